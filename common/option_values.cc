// SPDX-License-Identifier: Apache-2.0
#include "common/option_values.h"

#include <algorithm>
#include <limits>

#include "absl/strings/numbers.h"
#include "common/strings.h"

namespace baton::option_values {
namespace {

absl::Status Expected(const auto&... parts) { return absl::InvalidArgumentError(Concat("expected ", parts...)); }

struct Unit {
  std::string_view name;
  int shift;
};
constexpr Unit kUnits[] = {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"B", 0}};

}  // namespace

absl::StatusOr<int64_t> ParseInt(std::string_view text, int64_t min, int64_t max) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(ToAbsl(text), &value) || value < min || value > max) {
    return Expected("a whole number from ", min, " to ", max);
  }
  return value;
}

absl::StatusOr<absl::Duration> ParseDuration(std::string_view text, absl::Duration min, absl::Duration max) {
  absl::Duration value;
  if (!absl::ParseDuration(ToAbsl(text), &value) || value < min || value > max) {
    return Expected("a duration from ", absl::FormatDuration(min), " to ", absl::FormatDuration(max),
                    ", such as 250ms, 3s or 5m");
  }
  return value;
}

absl::StatusOr<ByteSize> ParseByteSize(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view unit_name = text.substr(digits);
  const auto* unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                  [&](const Unit& candidate) { return candidate.name == unit_name; });
  uint64_t count = 0;
  if (unit == std::end(kUnits) || !absl::SimpleAtoi(ToAbsl(text.substr(0, digits)), &count) ||
      count > std::numeric_limits<uint64_t>::max() >> unit->shift) {
    return Expected("a size with a unit (B, KiB, MiB, GiB, TiB), such as 512MiB");
  }
  return ByteSize{count << unit->shift};
}

std::string FormatByteSize(ByteSize size) {
  const auto* unit = std::find_if(std::begin(kUnits), std::end(kUnits), [&](const Unit& candidate) {
    return candidate.shift == 0 ||
           (size.bytes != 0 && (size.bytes >> candidate.shift) << candidate.shift == size.bytes);
  });
  return Concat(size.bytes >> unit->shift, unit->name);
}

}  // namespace baton::option_values
