// SPDX-License-Identifier: Apache-2.0
// Service level objectives of a request: the time to its first token, and the mean time per token after that.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace baton {

struct Slo {
  absl::Duration ttft = absl::InfiniteDuration();
  absl::Duration tpot = absl::InfiniteDuration();
};

// Parses a text such as "ttft=1.3s,tpot=22ms". INVALID_ARGUMENT says what was expected.
absl::StatusOr<Slo> ParseSlo(std::string_view text);

}  // namespace baton
