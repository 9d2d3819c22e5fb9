#include "kvtransfer/handoff/messages.h"

namespace baton::handoff {
namespace {

// The finalizer of splitmix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

const char* Name(RefuseReason reason) {
  switch (reason) {
    case RefuseReason::kUnknownAttempt:
      return "unknown attempt";
    case RefuseReason::kTooLarge:
      return "too large";
    case RefuseReason::kDraining:
      return "draining";
    case RefuseReason::kQueueFull:
      return "queue full";
  }
  return "?";
}

const char* Name(AbortReason reason) {
  switch (reason) {
    case AbortReason::kFinished:
      return "finished";
    case AbortReason::kCancelled:
      return "cancelled";
    case AbortReason::kRevoked:
      return "revoked";
    case AbortReason::kFailed:
      return "failed";
  }
  return "?";
}

const AttemptKey& KeyOf(const Message& message) {
  return std::visit([](const auto& m) -> const AttemptKey& { return m.key; }, message);
}

StreamId StreamOf(const AttemptKey& key) { return Mix(Mix(Mix(key.request.high) ^ key.request.low) ^ key.attempt); }

uint64_t BlockTag(int layer, PageId destination) {
  return Mix((uint64_t(uint32_t(layer)) << 32) | ToIndex(destination));
}

uint64_t CommitTag(const AttemptKey& key, int tokens, uint64_t sum_of_block_tags) {
  return Mix(Mix(StreamOf(key) ^ uint64_t(uint32_t(tokens))) ^ sum_of_block_tags);
}

}  // namespace baton::handoff
