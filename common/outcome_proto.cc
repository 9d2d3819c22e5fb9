// SPDX-License-Identifier: Apache-2.0
#include "common/outcome_proto.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace baton {

// The numbers of both sides are one and the same.
static_assert(int(Cause::kFinished) == v1::CAUSE_FINISHED && int(Cause::kHandedOver) == v1::CAUSE_HANDED_OVER &&
              int(Cause::kMigrated) == v1::CAUSE_MIGRATED && int(Cause::kCancelled) == v1::CAUSE_CANCELLED &&
              int(Cause::kDeadlineExceeded) == v1::CAUSE_DEADLINE_EXCEEDED &&
              int(Cause::kInvalid) == v1::CAUSE_INVALID && int(Cause::kTooLarge) == v1::CAUSE_TOO_LARGE &&
              int(Cause::kOverloaded) == v1::CAUSE_OVERLOADED && int(Cause::kQuarantined) == v1::CAUSE_QUARANTINED &&
              int(Cause::kPreempted) == v1::CAUSE_PREEMPTED && int(Cause::kDraining) == v1::CAUSE_DRAINING &&
              int(Cause::kRevoked) == v1::CAUSE_REVOKED && int(Cause::kUnknownAttempt) == v1::CAUSE_UNKNOWN_ATTEMPT &&
              int(Cause::kRefused) == v1::CAUSE_REFUSED && int(Cause::kPrefillLost) == v1::CAUSE_PREFILL_LOST &&
              int(Cause::kDecodeLost) == v1::CAUSE_DECODE_LOST && int(Cause::kPeerLost) == v1::CAUSE_PEER_LOST &&
              int(Cause::kPairMismatch) == v1::CAUSE_PAIR_MISMATCH && int(Cause::kInternal) == v1::CAUSE_INTERNAL &&
              int(Cause::kTooLate) == v1::CAUSE_TOO_LATE && int(Cause::kTooLate) == v1::Cause_MAX);
static_assert(int(Fault::kNobody) == v1::FAULT_NOBODY && int(Fault::kClient) == v1::FAULT_CLIENT &&
              int(Fault::kReporter) == v1::FAULT_REPORTER && int(Fault::kPeer) == v1::FAULT_PEER &&
              int(Fault::kPair) == v1::FAULT_PAIR && int(Fault::kPair) == v1::Fault_MAX);

v1::Cause ToProto(Cause cause) { return static_cast<v1::Cause>(cause); }

std::optional<Cause> CauseFromProto(v1::Cause cause) {
  if (!IsCause(int(cause))) return std::nullopt;
  return static_cast<Cause>(cause);
}

void FillFailed(const Outcome& outcome, v1::AttemptFailed* failed) {
  constexpr int64_t kMax = std::numeric_limits<uint32_t>::max();
  failed->set_cause(ToProto(outcome.cause));
  failed->set_at_fault(static_cast<v1::Fault>(outcome.at_fault));
  failed->set_message(outcome.detail);
  failed->set_retry_after_ms(
      static_cast<uint32_t>(std::clamp<int64_t>(absl::ToInt64Milliseconds(outcome.retry_after), 0, kMax)));
}

Outcome FromProto(const v1::AttemptFailed& failed) {
  const Cause known = CauseFromProto(failed.cause()).value_or(Cause::kInternal);
  const Cause cause = NextStepAfter(known) == NextStep::kDone ? Cause::kInternal : known;
  Outcome outcome(cause, failed.message());
  if (cause == known && IsFault(int(failed.at_fault()))) outcome.at_fault = static_cast<Fault>(failed.at_fault());
  outcome.retry_after = absl::Milliseconds(failed.retry_after_ms());
  return outcome;
}

}  // namespace baton
