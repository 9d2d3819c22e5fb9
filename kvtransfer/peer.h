// SPDX-License-Identifier: Apache-2.0
// A transport's peer: the process at the other end of an authenticated connection. transport.h defines the states.
#pragma once

#include <atomic>
#include <cstdint>

namespace baton {

// Identifies one authenticated connection. Never reused: a peer that reconnects gets a new PeerId.
enum class PeerId : uint64_t {};

// Returns a PeerId that is unique in this process. Thread-safe.
inline PeerId NextPeerId() {
  static std::atomic<uint64_t> next = 1;
  return PeerId{next++};
}

enum class PeerState : uint8_t { kAlive, kSilent, kGivenUp, kRevoked };

// Identifies a series of puts that are flushed together. The writer chooses ids that are unique per peer while in use.
using StreamId = uint64_t;

}  // namespace baton
