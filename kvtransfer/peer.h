// A peer of a transport, as the handoff protocol sees it. What the states mean and what proves them: transport.h.
#pragma once

#include <atomic>
#include <cstdint>

namespace baton {

// Names one authenticated connection and is never used again; a peer that comes back is a new PeerId.
enum class PeerId : uint64_t {};

// A new one, unique in this process. Thread-safe.
inline PeerId NextPeerId() {
  static std::atomic<uint64_t> next = 1;
  return PeerId{next++};
}

enum class PeerState : uint8_t { kAlive, kSilent, kGivenUp, kRevoked };

// Names a series of puts that are flushed together. Chosen by the writer, unique per peer while in use.
using StreamId = uint64_t;

}  // namespace baton
