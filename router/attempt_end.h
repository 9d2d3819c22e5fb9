// How an attempt ended: one word for AttemptInfo.ended_by, and for the outcome in logs and in baton_attempts_total.
#pragma once

#include <cstdint>
#include <string_view>

#include "baton/v1/worker.pb.h"

namespace baton::router {

enum class AttemptEnd : uint8_t {
  kFinished,
  kPrefillLost,
  kDecodeLost,
  kPeerLost,
  kPreempted,
  kOverloaded,
  kDraining,
  kMigrated,  // its sequence went to another decode worker, and the next attempt with it
  kRevoked,
  kRefused,  // the call was not taken: another version, an attempt that is not open
  kInvalid,
  kInternal,
  kCancelled,
  kDeadlineExceeded,
};

constexpr std::string_view Name(AttemptEnd end) {
  switch (end) {
    case AttemptEnd::kFinished:
      return "finished";
    case AttemptEnd::kPrefillLost:
      return "prefill_lost";
    case AttemptEnd::kDecodeLost:
      return "decode_lost";
    case AttemptEnd::kPeerLost:
      return "peer_lost";
    case AttemptEnd::kPreempted:
      return "preempted";
    case AttemptEnd::kOverloaded:
      return "overloaded";
    case AttemptEnd::kDraining:
      return "draining";
    case AttemptEnd::kMigrated:
      return "migrated";
    case AttemptEnd::kRevoked:
      return "revoked";
    case AttemptEnd::kRefused:
      return "refused";
    case AttemptEnd::kInvalid:
      return "invalid";
    case AttemptEnd::kInternal:
      return "internal";
    case AttemptEnd::kCancelled:
      return "cancelled";
    case AttemptEnd::kDeadlineExceeded:
      return "deadline_exceeded";
  }
  return "?";
}

// Of what a worker says.
constexpr AttemptEnd EndOf(v1::AttemptFailure cause) {
  switch (cause) {
    case v1::ATTEMPT_FAILURE_INVALID:
      return AttemptEnd::kInvalid;
    case v1::ATTEMPT_FAILURE_OVERLOADED:
    case v1::ATTEMPT_FAILURE_PEER_OVERLOADED:
      return AttemptEnd::kOverloaded;
    case v1::ATTEMPT_FAILURE_PREEMPTED:
      return AttemptEnd::kPreempted;
    case v1::ATTEMPT_FAILURE_PEER_LOST:
      return AttemptEnd::kPeerLost;
    case v1::ATTEMPT_FAILURE_REVOKED:
      return AttemptEnd::kRevoked;
    case v1::ATTEMPT_FAILURE_DRAINING:
      return AttemptEnd::kDraining;
    default:
      return AttemptEnd::kInternal;
  }
}

}  // namespace baton::router
