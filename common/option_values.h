// How option values are written and read. Private to options.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/options.h"

namespace baton::option_values {

// Each fails with INVALID_ARGUMENT saying what was expected; the caller adds the option's name and the text given.
absl::StatusOr<int64_t> ParseInt(std::string_view text, int64_t min, int64_t max);
absl::StatusOr<absl::Duration> ParseDuration(std::string_view text, absl::Duration min, absl::Duration max);
absl::StatusOr<ByteSize> ParseByteSize(std::string_view text);

// "512MiB": the largest unit that divides it.
std::string FormatByteSize(ByteSize size);

}  // namespace baton::option_values
