// SPDX-License-Identifier: Apache-2.0
// Identifiers that all processes share. Plain values.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace baton {

// Index into a model's vocabulary. Plain int32, so that spans can refer to protobuf's repeated fields.
using TokenId = int32_t;

// 128 random bits, drawn by the router per request. Independent of the client's request label.
struct RequestId {
  uint64_t high = 0;
  uint64_t low = 0;

  static RequestId Random();
  // Parses the 16 bytes of ToBytes(). INVALID_ARGUMENT names the length.
  static absl::StatusOr<RequestId> FromBytes(std::string_view bytes);

  std::string ToBytes() const;   // 16 bytes, big endian
  std::string ToString() const;  // 32 hex digits

  auto operator<=>(const RequestId&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const RequestId& id) {
    return H::combine(std::move(h), id.high, id.low);
  }
};

// An attempt of a request, numbered from 1. Retry, preemption, recovery and migration start the next attempt.
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

// Returns a random nonzero number that distinguishes the starts of a process.
uint64_t RandomEpoch();

}  // namespace baton
