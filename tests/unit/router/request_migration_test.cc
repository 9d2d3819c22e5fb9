// Live migration: attempt 2 is opened on d2 while attempt 1 runs on d1, which drains.
#include <gtest/gtest.h>

#include "request_machine_fixture.h"
#include "tests/status_matchers.h"

namespace baton::router {
namespace {

class RequestMigrationTest : public RequestMachineTest {
 protected:
  // 'a', 'b', 'c' have come from d1, which drains; attempt 2 is accepted by d2, and d1 was told to hand over.
  void BeginMigrating() {
    BeginDecoding();
    Decode(1, Tokens(1, {1, 2}));
    Decode(1, Draining());
    PlaceMigrationOn("d2");
    Accept(2);
    ASSERT_EQ(Count<action::Migrate>(), 1);
  }
  void Finish(uint32_t attempt) {
    std::vector<TokenId> rest;
    for (TokenId token = static_cast<TokenId>(SentTokens().size()); token < 10; ++token) rest.push_back(token);
    Decode(attempt, Tokens(static_cast<uint32_t>(10 - rest.size()), rest));
    Decode(attempt, DecodeFinished(v1::FINISH_REASON_LENGTH));
  }
  // Of the attempts that had ended, in that order.
  std::vector<std::string> Ends() const {
    std::vector<std::string> ends;
    for (const Action& action : actions_) {
      const auto* ended = std::get_if<action::AttemptEnded>(&action);
      if (ended != nullptr) ends.push_back(absl::StrCat(ended->attempt, " ", std::string(Name(ended->end))));
    }
    return ends;
  }
};

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
  EXPECT_EQ(Last<action::Resumed>().end, AttemptEnd::kMigrated);
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

TEST_F(RequestMigrationTest, AFailedMoveCostsNothingAndIsTriedAgain) {
  struct Case {
    const char* name;
    std::function<void()> fail;
  };
  const std::vector<Case> cases = {
      {"the draining worker cannot", [&] { Prefill(2, PrefillFailed(v1::ATTEMPT_FAILURE_REVOKED)); }},
      {"the migrate call is lost", [&] { PrefillEnds(2, absl::UnimplementedError("no such method")); }},
      {"the other worker fails it", [&] { Decode(2, DecodeFailed(v1::ATTEMPT_FAILURE_PEER_LOST)); }},
      {"the other worker is lost", [&] { DecodeEnds(2, absl::UnavailableError("gone")); }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    actions_.clear();
    BeginMigrating();
    c.fail();
    EXPECT_EQ(Ends().size(), 1u);
    EXPECT_EQ(Count<action::Place>(), 1) << "no other attempt";
    Decode(1, Tokens(3, {3}));
    Wake();
    EXPECT_EQ(Count<action::PlaceMigration>(), 2);
    PlaceMigrationNowhere();
    Wake();
    EXPECT_EQ(Count<action::PlaceMigration>(), 3);
    Finish(1);
    EXPECT_EQ(Text(), "abcdefghij");
    EXPECT_EQ(Count<action::Finish>(), 1);
  }
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

// What d1 had sampled and not sent is lost with it: d2 begins behind that.
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
  PlaceOn("p1", "d2");
  PlaceMigrationOn("d2");
  EXPECT_EQ(Count<action::OpenDecode>(), 2) << "attempt 2 runs and is to stay";
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
