// SPDX-License-Identifier: Apache-2.0
// Outcome: how an attempt, or a handoff for an attempt, ended, and whose fault the end is.
//
// An outcome travels unchanged in meaning from the handoff machines over the workers to the router. Who reads an
// outcome asks the functions below and never switches over causes: outcomes.def is the one table of consequences.
//
// All of this is values and pure functions: safe to use from any thread.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace baton {

// kCancelled        the client, or the router for the client, no longer wants the attempt
// kTooLarge         the request can never fit into the reporter's pages; kInvalid: any other fault of the request
// kOverloaded       a bounded queue is full; kQuarantined: pages of silent peers leave too little room
// kTooLate          the first token cannot come in time any more: others wait before
// kPreempted        pages ran out and this sequence was the youngest
// kRevoked          one worker of the pair withdrew the attempt, or kept a sequence that was to be migrated
// kUnknownAttempt   the attempt is not open where a message about it arrived
// kRefused          a worker did not take the router's call
// kPrefillLost, kDecodeLost  the router's call to that worker broke
// kPeerLost         the other worker of the pair is silent or dead; kPairMismatch: the two do not fit together
enum class Cause : uint8_t {
#define CAUSE(id, number, name, fault, transfer, pair, attempt, next) id = (number),
#include "common/outcomes.def"
};

// From the point of view of the worker that reports the outcome. kPair: either worker may be to blame.
enum class Fault : uint8_t { kNobody = 1, kClient = 2, kReporter = 3, kPeer = 4, kPair = 5 };

// The router's next step for a request after the end of an attempt.
enum class NextStep : uint8_t {
  kDone,      // nothing went wrong
  kFail,      // every other attempt would end in the same way
  kRetry,     // another attempt
  kFindRoom,  // another attempt where there is room; RESOURCE_EXHAUSTED if there is none for long
};

struct Outcome {
  Outcome() = default;
  // Blames whom the table blames, and hints when to come back if the cause is a lack of room.
  Outcome(Cause cause, std::string detail);
  Outcome(Cause cause, Fault at_fault, std::string detail);

  Cause cause = Cause::kInternal;
  Fault at_fault = Fault::kReporter;
  std::string detail;          // for people: what happened, where
  absl::Duration retry_after;  // zero: no hint

  bool operator==(const Outcome&) const = default;
  std::string ToString() const;  // "peer_lost (fault of peer): no heartbeat"
};

// Stable, for logs and metric labels: "peer_lost", "reporter".
std::string_view Name(Cause cause);
std::string_view Name(Fault fault);
// Does `number` stand for a cause, or a fault? For numbers that came over a wire.
bool IsCause(int number);
bool IsFault(int number);

Fault DefaultFault(Cause cause);
NextStep NextStepAfter(Cause cause);
// The attempt uses up one of the request's max_attempts.
bool CountsAsAttempt(Cause cause);
// A handoff that ends so counts as a failed KV transfer: cut off, lost or corrupt, as opposed to refused or unwanted.
bool FailsKvTransfer(Cause cause);
// The router gives the pair no requests until a probe has passed.
bool BreaksPair(const Outcome& outcome);
// Whom the request's next attempt avoids.
bool AvoidsReporter(const Outcome& outcome);
bool AvoidsPeer(const Outcome& outcome);

// Turns an outcome that the peer reported to us into our own point of view: their reporter is our peer.
Outcome FromPeer(Outcome reported);

inline std::ostream& operator<<(std::ostream& os, Cause cause) { return os << Name(cause); }
inline std::ostream& operator<<(std::ostream& os, Fault fault) { return os << Name(fault); }
inline std::ostream& operator<<(std::ostream& os, const Outcome& outcome) { return os << outcome.ToString(); }

}  // namespace baton
