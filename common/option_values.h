// SPDX-License-Identifier: Apache-2.0
// Parses and formats the values of options. Private to options.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/options.h"

namespace baton::option_values {

// Each function fails with INVALID_ARGUMENT that says what was expected. The caller adds the option's name and the
// text.
absl::StatusOr<int64_t> ParseInt(std::string_view text, int64_t min, int64_t max);
absl::StatusOr<absl::Duration> ParseDuration(std::string_view text, absl::Duration min, absl::Duration max);
absl::StatusOr<ByteSize> ParseByteSize(std::string_view text);

// Formats a size in the largest unit that divides the size, such as "512MiB".
std::string FormatByteSize(ByteSize size);

}  // namespace baton::option_values
