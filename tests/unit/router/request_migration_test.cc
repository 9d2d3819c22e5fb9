// SPDX-License-Identifier: Apache-2.0
// Live migration: attempt 2 is opened on d2 while attempt 1 runs on d1, which drains.
#include <gtest/gtest.h>

#include "request_migration_fixture.h"
#include "tests/status_matchers.h"

namespace baton::router {
namespace {

TEST_F(RequestMigrationTest, OpensAnAttemptElsewhereAndHasTheDrainingWorkerHandOver) {
  BeginMigrating();
  ASSERT_EQ(Last<action::PlaceMigration>().avoid.size(), 1u);
  EXPECT_EQ(Last<action::PlaceMigration>().avoid[0].id, "d1");
  EXPECT_EQ(Last<action::OpenDecode>().placement.prefill.key.id, "d1");
  EXPECT_EQ(Last<action::OpenDecode>().placement.decode.key.id, "d2");
  EXPECT_EQ(Last<action::Migrate>().from, 1u);
  EXPECT_EQ(Last<action::Migrate>().attempt, 2u);
  EXPECT_EQ(Last<action::Migrate>().prior_output_tokens, 3u);
  EXPECT_EQ(Count<action::SubmitPrefill>(), 1) << "attempt 1's";
  EXPECT_EQ(Count<action::CancelDecode>(), 0) << "attempt 1 goes on";
}

TEST_F(RequestMigrationTest, TheSuccessorTakesOverWhenItHasStarted) {
  BeginMigrating();
  Decode(1, Tokens(3, {3, 4}));
  now_ += absl::Milliseconds(30);
  Decode(2, StartedFrom(5));
  EXPECT_EQ(Last<action::CancelDecode>().attempt, 1u);
  EXPECT_EQ(Ends(), std::vector<std::string>{"1 migrated"});
  Prefill(2, HandedOver());
  Decode(1, Tokens(5, {17}));  // of before: ignored
  now_ += absl::Milliseconds(10);
  Finish(2);
  EXPECT_EQ(Text(), "abcdefghij");
  EXPECT_EQ(Ends(), (std::vector<std::string>{"1 migrated", "2 finished"}));
  const v1::Finish finish = Last<action::Finish>().finish;
  ASSERT_EQ(finish.attempts_size(), 2);
  EXPECT_EQ(finish.attempts(0).ended_by(), "migrated");
  EXPECT_EQ(finish.attempts(1).prefill_worker(), "d1");
  EXPECT_EQ(finish.attempts(1).kv_bytes(), 4096u);
  EXPECT_NEAR(finish.attempts(1).pause_seconds(), 0.04, 1e-9);
  EXPECT_EQ(Last<action::Resumed>().pause, absl::Milliseconds(40));
  EXPECT_EQ(Last<action::Resumed>().after, Cause::kMigrated);
  EXPECT_EQ(finish.usage().cached_prompt_tokens(), 2u) << "the prompt's, not the migration's";
}

TEST_F(RequestMigrationTest, TokensOfTheTwoStreamsAreOrdered) {
  BeginMigrating();
  Decode(2, StartedFrom(5));
  EXPECT_TRUE(Ends().empty()) << "tokens 3 and 4 are still to come";
  now_ += absl::Milliseconds(20);
  Decode(2, Tokens(5, {5, 6}));
  EXPECT_EQ(Text(), "abc");
  Decode(1, Tokens(3, {3, 4}));
  EXPECT_EQ(Text(), "abcdefg");
  Decode(1, Migrated(2));
  EXPECT_EQ(Ends(), std::vector<std::string>{"1 migrated"});
  EXPECT_EQ(Last<action::Resumed>().pause, absl::Milliseconds(20));
  Finish(2);
  EXPECT_EQ(Text(), "abcdefghij");
}

TEST_F(RequestMigrationTest, AnEndThatTheSuccessorReachesFirstWaitsForTheTokensBefore) {
  BeginMigrating();
  Decode(2, StartedFrom(5));
  Decode(2, Tokens(5, {5, 6, 7, 8, 9}));
  Decode(2, DecodeFinished(v1::FINISH_REASON_LENGTH));
  EXPECT_EQ(Text(), "abc");
  Decode(1, Tokens(3, {3, 4}));
  Prefill(2, HandedOver());
  EXPECT_EQ(Text(), "abcdefghij");
  EXPECT_EQ(Count<action::Finish>(), 1);
  EXPECT_EQ(Ends(), (std::vector<std::string>{"1 migrated", "2 finished"}));
}

TEST_F(RequestMigrationTest, AStopStringThatSpansTheTwoEndsBoth) {
  spec_.stop = {"ef"};
  BeginMigrating();
  Decode(2, StartedFrom(5));
  Decode(2, Tokens(5, {5, 6}));
  Decode(1, Tokens(3, {3, 4}));
  EXPECT_EQ(Last<action::CancelDecode>().attempt, 2u) << "it knows of no stop strings";
  Prefill(2, HandedOver());
  EXPECT_EQ(Count<action::Finish>(), 1) << "nothing is waited for";
  EXPECT_EQ(Text(), "abcd");
}

TEST_F(RequestMigrationTest, TheLossOfTheDrainingWorkerEndsBoth) {
  BeginMigrating();
  DecodeEnds(1, absl::UnavailableError("gone"));
  EXPECT_EQ(Ends(), (std::vector<std::string>{"1 decode_lost", "2 cancelled"}));
  EXPECT_EQ(Last<action::CancelDecode>().attempt, 2u);
  EXPECT_EQ(Last<action::CancelPrefill>().attempt, 2u);
  PlaceOn("p1", "d2");
  EXPECT_EQ(Last<action::OpenDecode>().attempt, 3u);
  Accept(3);
  Prefill(3, FirstToken(3, 3));
  Decode(3, Started());
  Prefill(3, HandedOver());
  Finish(3);
  EXPECT_EQ(Text(), "abcdefghij");
}

// Tokens that d1 had sampled and not sent are lost with d1: d2 begins behind these tokens.
TEST_F(RequestMigrationTest, TokensLostWithTheDrainingWorkerAreComputedAgain) {
  BeginMigrating();
  Decode(2, StartedFrom(5));
  Decode(2, Tokens(5, {5}));
  DecodeEnds(1, absl::UnavailableError("gone"));
  EXPECT_EQ(Ends(), (std::vector<std::string>{"1 decode_lost", "2 cancelled"}));
  PlaceOn("p1", "d2");
  Accept(3);
  Finish(3);
  EXPECT_EQ(Text(), "abcdefghij");
}

TEST_F(RequestMigrationTest, TheLossOfTheOtherWorkerAfterTheHandoverIsAnOrdinaryOne) {
  BeginMigrating();
  Decode(1, Migrated(2));
  EXPECT_TRUE(Ends().empty()) << "the other one has not said that it started";
  DecodeEnds(2, absl::UnavailableError("gone"));
  EXPECT_EQ(Ends(), (std::vector<std::string>{"1 migrated", "2 decode_lost"}));
  EXPECT_EQ(Count<action::Place>(), 2);
  PlaceOn("p1", "d3");
  Accept(3);
  Finish(3);
  EXPECT_EQ(Text(), "abcdefghij");
}

TEST_F(RequestMigrationTest, AnOutputThatEndsOnTheWayNeedsNoSuccessor) {
  BeginMigrating();
  Finish(1);
  EXPECT_EQ(Count<action::Finish>(), 1);
  EXPECT_EQ(Ends(), (std::vector<std::string>{"2 cancelled", "1 finished"}));
  EXPECT_EQ(Last<action::CancelDecode>().attempt, 2u);
  EXPECT_EQ(Last<action::CancelPrefill>().attempt, 2u);
}

TEST_F(RequestMigrationTest, CancelReachesAllThreeCalls) {
  BeginMigrating();
  machine_->OnCancelled(now_, absl::CancelledError("the client left"));
  for (Action& action : machine_->TakeActions()) actions_.push_back(std::move(action));
  EXPECT_EQ(Count<action::CancelDecode>(), 2);
  EXPECT_EQ(Count<action::CancelPrefill>(), 1) << "attempt 2's Migrate; attempt 1's prefill is over";
  EXPECT_EQ(Ends(), (std::vector<std::string>{"1 cancelled", "2 cancelled"}));
}

TEST_F(RequestMigrationTest, AWorkerThatDrainsInTurnIsLeftInTurn) {
  BeginMigrating();
  Decode(2, StartedFrom(3));
  Decode(2, Draining());
  PlaceMigrationOn("d3");
  Accept(3);
  EXPECT_EQ(Last<action::Migrate>().from, 2u);
  Decode(3, Draining());
  EXPECT_EQ(Count<action::PlaceMigration>(), 2) << "not before it is the open one";
  Decode(3, StartedFrom(3));
  EXPECT_EQ(Count<action::PlaceMigration>(), 3);
  EXPECT_EQ(Last<action::PlaceMigration>().avoid[0].id, "d3");
}

TEST_F(RequestMigrationTest, AResultOfAnEarlierSearchIsNotTaken) {
  BeginDecoding();
  Decode(1, Draining());
  DecodeEnds(1, absl::UnavailableError("gone"));
  PlaceMigrationOn("d2");
  EXPECT_EQ(Count<action::OpenDecode>(), 1) << "attempt 1 has ended meanwhile";

  actions_.clear();
  BeginDecoding();
  Decode(1, Draining());
  DecodeEnds(1, absl::UnavailableError("gone"));
  PlaceOn("p1", "d2");
  PlaceMigrationOn("d2");
  EXPECT_EQ(Count<action::OpenDecode>(), 2) << "attempt 2 runs and is to stay";
}

TEST_F(RequestMigrationTest, TokensOfTheOtherWorkerLeaveAsSoonAsThoseBeforeHave) {
  BeginMigrating();
  Decode(2, StartedFrom(5));
  Decode(2, Tokens(3, {3, 4, 5}));  // it says again what came with the sequence
  EXPECT_EQ(Text(), "abcdef");
  EXPECT_EQ(Ends(), std::vector<std::string>{"1 migrated"});
}

TEST_F(RequestMigrationTest, AMoveIsReportedAsAnAttemptWithoutAPrompt) {
  BeginAccepted();
  Prefill(1, FirstToken(0, 0));
  Decode(1, Started());
  v1::PrefillEvent prompt = HandedOver();
  prompt.mutable_handed_over()->set_prefill_seconds(0.5);
  prompt.mutable_handed_over()->set_transfer_seconds(0.25);
  Prefill(1, prompt);
  Decode(1, Draining());
  PlaceMigrationOn("d2");
  Accept(2);
  v1::PrefillEvent moved = HandedOver();
  moved.mutable_handed_over()->set_kv_bytes(1234);
  moved.mutable_handed_over()->set_prefill_seconds(7);
  moved.mutable_handed_over()->set_transfer_seconds(0.5);
  Prefill(2, moved);
  Decode(2, StartedFrom(1));
  Finish(2);
  const v1::Finish finish = Last<action::Finish>().finish;
  EXPECT_DOUBLE_EQ(finish.timings().prefill_seconds(), 0.5);
  EXPECT_DOUBLE_EQ(finish.timings().transfer_seconds(), 0.75);
  ASSERT_EQ(finish.attempts_size(), 2);
  EXPECT_EQ(finish.attempts(1).attempt(), 2u);
  EXPECT_EQ(finish.attempts(1).prefill_worker(), "d1");
  EXPECT_EQ(finish.attempts(1).decode_worker(), "d2");
  EXPECT_EQ(finish.attempts(1).kv_bytes(), 1234u);
}

TEST_F(RequestMigrationTest, ADisagreementOfTheTwoFailsTheRequest) {
  BeginMigrating();
  Decode(2, StartedFrom(4));
  Decode(2, Tokens(4, {4}));
  Decode(1, Tokens(3, {3, 20}));
  EXPECT_EQ(Count<action::Disagreement>(), 1);
  EXPECT_TRUE(testing::Fails(Failure(), absl::StatusCode::kInternal, "output token 4"));
}

}  // namespace
}  // namespace baton::router
