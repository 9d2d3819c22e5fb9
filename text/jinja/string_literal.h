// The escapes of Python's string literals.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace baton::jinja {

// `literal` is valid UTF-8, without its quotes. INVALID_ARGUMENT when an escape is incomplete or no Unicode scalar
// value.
absl::StatusOr<std::string> UnescapeString(std::string_view literal);

}  // namespace baton::jinja
