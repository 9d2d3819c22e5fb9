// The messages with which two workers introduce themselves, and the check that the workers fit.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "engine/kv/layout.h"

namespace baton::handoff {

constexpr uint32_t kProtocolVersion = 3;  // HANDOFF_PROTOCOL_CURRENT

// First message of the side that connected. Decode does not check the values: CheckPair does.
struct Hello {
  uint32_t protocol = kProtocolVersion;
  std::string worker_id;
  uint64_t epoch = 0;
  std::string numerics_id;
  uint32_t layers = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t page_tokens = 0;
  std::string dtype;
  uint32_t pages_total = 0;  // in the pool of the Hello's worker

  bool operator==(const Hello&) const = default;
};

// Answer to Hello. An error refuses the pair and says why.
struct Welcome {
  std::string error;
  Hello self;
  bool operator==(const Welcome&) const = default;
};

void SetLayout(const KvLayout& layout, uint32_t pages_total, Hello* hello);

// FAILED_PRECONDITION, naming the field and both values, unless both workers have the same protocol, numerics and
// pages.
absl::Status CheckPair(const Hello& ours, const Hello& theirs);

}  // namespace baton::handoff
