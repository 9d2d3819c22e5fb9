// Identifiers that every process shares.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace baton {

// An index into a model's vocabulary. Plain int32 so that protobuf's repeated fields are spans of it.
using TokenId = int32_t;

// 128 random bits, drawn by the router per request. A client's own label is never one.
struct RequestId {
  uint64_t high = 0;
  uint64_t low = 0;

  static RequestId Random();
  // From the 16 bytes of ToBytes(); INVALID_ARGUMENT with the length otherwise.
  static absl::StatusOr<RequestId> FromBytes(std::string_view bytes);

  std::string ToBytes() const;   // 16 bytes, big endian
  std::string ToString() const;  // 32 hex digits

  auto operator<=>(const RequestId&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const RequestId& id) {
    return H::combine(std::move(h), id.high, id.low);
  }
};

// One try at serving a request; attempts count from 1. Retry, preemption and recovery open the next one.
struct AttemptKey {
  RequestId request;
  uint32_t attempt = 0;

  std::string ToString() const;  // "<32 hex digits>/<attempt>"

  auto operator<=>(const AttemptKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const AttemptKey& key) {
    return H::combine(std::move(h), key.request, key.attempt);
  }
};

// Tells one start of a process from the next.
uint64_t RandomEpoch();

}  // namespace baton
