// SPDX-License-Identifier: Apache-2.0
#include "common/outcome.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "common/outcome_proto.h"

namespace baton {
namespace {

const std::vector<Cause>& AllCauses() {
  static const auto* causes = new std::vector<Cause>{
#define CAUSE(id, number, name, fault, transfer, pair, attempt, next) Cause::id,
#include "common/outcomes.def"
  };
  return *causes;
}

// The rules of the table, said once more and apart from the table: who changes one has to change both.
TEST(OutcomeTest, EachCauseHasItsConsequences) {
  struct Case {
    Cause cause;
    const char* name;
    Fault at_fault;
    bool fails_transfer;
    bool breaks_pair;
    bool counts;
    NextStep next;
  };
  const std::vector<Case> cases = {
      {Cause::kFinished, "finished", Fault::kNobody, false, false, false, NextStep::kDone},
      {Cause::kHandedOver, "handed_over", Fault::kNobody, false, false, false, NextStep::kDone},
      {Cause::kMigrated, "migrated", Fault::kNobody, false, false, false, NextStep::kDone},
      {Cause::kCancelled, "cancelled", Fault::kClient, false, false, true, NextStep::kRetry},
      {Cause::kDeadlineExceeded, "deadline_exceeded", Fault::kClient, false, false, false, NextStep::kFail},
      {Cause::kInvalid, "invalid", Fault::kClient, false, false, false, NextStep::kFail},
      {Cause::kTooLarge, "too_large", Fault::kClient, false, false, false, NextStep::kFail},
      {Cause::kOverloaded, "overloaded", Fault::kReporter, false, false, false, NextStep::kFindRoom},
      {Cause::kQuarantined, "quarantined", Fault::kReporter, false, false, false, NextStep::kFindRoom},
      {Cause::kPreempted, "preempted", Fault::kNobody, false, false, false, NextStep::kRetry},
      {Cause::kDraining, "draining", Fault::kReporter, false, false, true, NextStep::kRetry},
      {Cause::kRevoked, "revoked", Fault::kNobody, false, false, true, NextStep::kRetry},
      {Cause::kUnknownAttempt, "unknown_attempt", Fault::kNobody, false, false, true, NextStep::kRetry},
      {Cause::kRefused, "refused", Fault::kReporter, false, false, true, NextStep::kRetry},
      {Cause::kPrefillLost, "prefill_lost", Fault::kReporter, false, false, true, NextStep::kRetry},
      {Cause::kDecodeLost, "decode_lost", Fault::kReporter, false, false, true, NextStep::kRetry},
      {Cause::kPeerLost, "peer_lost", Fault::kPeer, true, true, true, NextStep::kRetry},
      {Cause::kPairMismatch, "pair_mismatch", Fault::kPair, false, true, true, NextStep::kRetry},
      {Cause::kInternal, "internal", Fault::kReporter, true, false, true, NextStep::kRetry},
      {Cause::kTooLate, "too_late", Fault::kReporter, false, false, false, NextStep::kFindRoom},
  };
  EXPECT_EQ(cases.size(), AllCauses().size());
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Outcome outcome(c.cause, "why");
    EXPECT_EQ(Name(c.cause), c.name);
    EXPECT_EQ(outcome.at_fault, c.at_fault);
    EXPECT_EQ(FailsKvTransfer(c.cause), c.fails_transfer);
    EXPECT_EQ(BreaksPair(outcome), c.breaks_pair);
    EXPECT_EQ(CountsAsAttempt(c.cause), c.counts);
    EXPECT_EQ(NextStepAfter(c.cause), c.next);
    EXPECT_EQ(AvoidsReporter(outcome), c.at_fault == Fault::kReporter);
    EXPECT_EQ(AvoidsPeer(outcome), c.at_fault == Fault::kPeer);
    EXPECT_EQ(outcome.retry_after > absl::ZeroDuration(), c.next == NextStep::kFindRoom);
  }
}

TEST(OutcomeTest, AClientIsNeverBlamedOnAWorker) {
  for (const Cause cause : AllCauses()) {
    if (DefaultFault(cause) != Fault::kClient) continue;
    SCOPED_TRACE(std::string(Name(cause)));
    for (const Outcome& outcome : {Outcome(cause, ""), FromPeer(Outcome(cause, ""))}) {
      EXPECT_FALSE(FailsKvTransfer(outcome.cause));
      EXPECT_FALSE(BreaksPair(outcome));
      EXPECT_FALSE(AvoidsReporter(outcome) || AvoidsPeer(outcome));
    }
  }
}

TEST(OutcomeTest, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const Cause cause : AllCauses()) EXPECT_TRUE(names.insert(Name(cause)).second) << Name(cause);
}

TEST(OutcomeTest, APeersPointOfViewIsTurnedIntoOurs) {
  const std::pair<Fault, Fault> cases[] = {{Fault::kNobody, Fault::kNobody},
                                           {Fault::kClient, Fault::kClient},
                                           {Fault::kReporter, Fault::kPeer},
                                           {Fault::kPeer, Fault::kReporter},
                                           {Fault::kPair, Fault::kPair}};
  for (const auto& [theirs, ours] : cases) {
    const Outcome reported(Cause::kInternal, theirs, "why");
    EXPECT_EQ(FromPeer(reported), Outcome(Cause::kInternal, ours, "why"));
    EXPECT_EQ(FromPeer(FromPeer(reported)), reported);
  }
}

TEST(OutcomeTest, AFaultOfThePairBreaksThePairWhateverTheCause) {
  EXPECT_TRUE(BreaksPair(Outcome(Cause::kInternal, Fault::kPair, "the tag does not fit")));
  EXPECT_FALSE(BreaksPair(Outcome(Cause::kInternal, Fault::kReporter, "out of memory")));
}

// ------------------------------------------------------------------------------------------------------ on the wire

TEST(OutcomeProtoTest, EveryFailureComesBackAsItWas) {
  for (const Cause cause : AllCauses()) {
    if (NextStepAfter(cause) == NextStep::kDone) continue;
    for (const Fault fault : {Fault::kNobody, Fault::kClient, Fault::kReporter, Fault::kPeer, Fault::kPair}) {
      Outcome outcome(cause, fault, "why");
      outcome.retry_after = absl::Milliseconds(321);
      v1::AttemptFailed failed;
      FillFailed(outcome, &failed);
      EXPECT_EQ(FromProto(failed), outcome);
    }
  }
}

TEST(OutcomeProtoTest, AFaultThatIsNotGivenIsTheCausesOwn) {
  v1::AttemptFailed failed;
  failed.set_cause(v1::CAUSE_PEER_LOST);
  EXPECT_EQ(FromProto(failed).at_fault, Fault::kPeer);
  failed.set_at_fault(static_cast<v1::Fault>(77));
  EXPECT_EQ(FromProto(failed).at_fault, Fault::kPeer);
}

TEST(OutcomeProtoTest, WhatIsNoFailureReadsAsInternal) {
  for (const v1::Cause cause :
       {v1::CAUSE_UNSPECIFIED, v1::CAUSE_FINISHED, v1::CAUSE_MIGRATED, static_cast<v1::Cause>(99)}) {
    v1::AttemptFailed failed;
    failed.set_cause(cause);
    failed.set_message("said so");
    EXPECT_EQ(FromProto(failed).cause, Cause::kInternal) << int(cause);
    EXPECT_EQ(FromProto(failed).detail, "said so");
  }
}

}  // namespace
}  // namespace baton
