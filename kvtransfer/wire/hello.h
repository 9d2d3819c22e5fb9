// SPDX-License-Identifier: Apache-2.0
// The messages with which two workers introduce themselves, and the check that the workers fit.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace baton::handoff {

constexpr uint32_t kProtocolVersion = 3;  // HANDOFF_PROTOCOL_CURRENT

// First message of the side that connected. Decode does not check the values: CheckPair does.
struct Hello {
  uint32_t protocol = kProtocolVersion;
  std::string worker_id;
  uint64_t epoch = 0;
  std::string numerics_id;
  std::string layout;        // KvLayout::ToString
  uint32_t pages_total = 0;  // in the pool of the Hello's worker

  bool operator==(const Hello&) const = default;
};

// Answer to Hello. An error refuses the pair and says why.
struct Welcome {
  std::string error;
  Hello self;
  bool operator==(const Welcome&) const = default;
};

// FAILED_PRECONDITION, naming the field and both values, unless both workers have the same protocol, numerics and
// pages.
absl::Status CheckPair(const Hello& ours, const Hello& theirs);

}  // namespace baton::handoff
