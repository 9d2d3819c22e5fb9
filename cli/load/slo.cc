// SPDX-License-Identifier: Apache-2.0
#include "cli/load/slo.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_split.h"

namespace baton {

absl::StatusOr<Slo> ParseSlo(std::string_view text) {
  const auto expected = [] { return absl::InvalidArgumentError("expected times such as ttft=1.3s,tpot=22ms"); };
  Slo slo;
  for (const auto& part : absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
    const std::pair<std::string, std::string> entry = absl::StrSplit(part, absl::MaxSplits('=', 1));
    absl::Duration* const time = entry.first == "ttft" ? &slo.ttft : entry.first == "tpot" ? &slo.tpot : nullptr;
    if (time == nullptr || *time != absl::InfiniteDuration()) return expected();
    if (!absl::ParseDuration(entry.second, time) || *time <= absl::ZeroDuration()) return expected();
  }
  return slo;
}

}  // namespace baton
