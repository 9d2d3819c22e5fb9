// SPDX-License-Identifier: Apache-2.0
// Resolves the escapes of Python's string literals. Pure function.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace baton::jinja {

// `literal` is valid UTF-8 without the quotes. INVALID_ARGUMENT when an escape is incomplete, unsupported, or not a
// Unicode scalar value.
absl::StatusOr<std::string> UnescapeString(std::string_view literal);

}  // namespace baton::jinja
