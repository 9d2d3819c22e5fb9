// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/handoff/writer_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"

namespace baton::handoff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr AttemptKey kAttempt{.request = {1, 2}, .attempt = 3};
const KvLayout kLayout(2, {.page_tokens = 4});
const WriterConfig kConfig{.layout = &kLayout, .peer_pages_total = 100};
constexpr int kTokens = 10;  // three pages

// Names of actions, and of the messages sent, in order.
std::vector<std::string> Names(const std::vector<WriterMachine::Action>& actions) {
  std::vector<std::string> names;
  for (const WriterMachine::Action& action : actions) {
    if (const auto* send = std::get_if<WriterMachine::Send>(&action)) {
      constexpr const char* kMessages[] = {"Reserve", "Queued",    "Granted", "Refused", "CancelReserve",
                                           "Commit",  "Committed", "Revoke",  "Aborted"};
      std::string name = kMessages[send->message.index()];
      if (const auto* aborted = std::get_if<Aborted>(&send->message))
        name += "(" + std::string(Name(aborted->cause)) + ")";
      names.push_back(name);
    } else {
      constexpr const char* kActions[] = {"",        "put",     "flush",  "disconnect", "queued",
                                          "granted", "flushed", "finish", "fail",       "release"};
      names.push_back(kActions[action.index()]);
    }
  }
  return names;
}

Granted Grant(std::vector<uint32_t> pages, std::vector<int> wanted) {
  Granted granted{kAttempt, {}, std::move(wanted)};
  for (uint32_t page : pages) granted.pages.push_back(PageId{page});
  return granted;
}

class WriterTest : public ::testing::Test {
 protected:
  std::vector<std::string> On(const WriterMachine::Event& event) { return Names(last_ = writer_.On(event)); }
  std::vector<std::string> OnMessage(Message message) { return On(WriterMachine::Event(std::move(message))); }
  template <typename T>
  const T& Last() const {
    return std::get<T>(last_.back());
  }

  void GetGranted() {
    On(WriterMachine::Start{});
    ASSERT_THAT(OnMessage(Grant({7, 8, 3}, {0, 1, 2})), ElementsAre("granted"));
  }
  std::vector<std::string> PutLayer(int layer, int first_page, std::vector<PageId> sources) {
    return On(WriterMachine::PutLayer{layer, first_page, std::move(sources)});
  }

  WriterMachine writer_{kConfig, Reserve{kAttempt, kTokens, {}}};
  std::vector<WriterMachine::Action> last_;
};

TEST_F(WriterTest, HandsOverThroughAllStates) {
  EXPECT_THAT(On(WriterMachine::Start{}), ElementsAre("Reserve"));
  EXPECT_THAT(OnMessage(Queued{kAttempt}), ElementsAre("queued"));
  EXPECT_THAT(OnMessage(Grant({7, 8, 3}, {0, 1, 2})), ElementsAre("granted"));
  EXPECT_THAT(PutLayer(0, 0, {PageId{40}, PageId{41}, PageId{42}}), ElementsAre("put"));
  EXPECT_THAT(PutLayer(1, 0, {PageId{40}, PageId{41}, PageId{42}}), ElementsAre("put"));
  EXPECT_THAT(On(WriterMachine::CommitSequence{{99}}), ElementsAre("flush"));
  EXPECT_THAT(On(WriterMachine::FlushDone{}), ElementsAre("Commit"));
  const Commit commit = std::get<Commit>(Last<WriterMachine::Send>().message);
  uint64_t sum = 0;
  for (int layer : {0, 1}) {
    for (uint32_t page : {7, 8, 3}) sum += BlockTag(layer, PageId{page});
  }
  EXPECT_EQ(commit, (Commit{kAttempt, kTokens, {99}, CommitTag(kAttempt, kTokens, sum)}));
  EXPECT_THAT(OnMessage(Committed{kAttempt, ""}), ElementsAre("finish"));
  EXPECT_TRUE(writer_.ended());
}

TEST_F(WriterTest, PutsOnlyWantedPagesWhereTheGrantSays) {
  On(WriterMachine::Start{});
  OnMessage(Grant({7, 8, 3}, {0, 2}));
  ASSERT_THAT(PutLayer(1, 0, {PageId{40}, PageId{41}, PageId{42}}), ElementsAre("put"));
  const WriterMachine::Put& put = Last<WriterMachine::Put>();
  EXPECT_EQ(put.layer, 1);
  EXPECT_THAT(put.sources, ElementsAre(PageId{40}, PageId{42}));
  EXPECT_THAT(put.destinations, ElementsAre(PageId{7}, PageId{3}));
  EXPECT_THAT(PutLayer(1, 1, {PageId{41}}), IsEmpty()) << "nothing wanted";
}

TEST_F(WriterTest, PutsALayerIntoThePagesOfItsKvGroup) {
  const KvLayout layout({{.page_tokens = 4}, {.page_tokens = 4}}, std::array{0, 1});
  WriterMachine writer({.layout = &layout, .peer_pages_total = 100}, {kAttempt, /*tokens=*/6, {}});
  writer.On(WriterMachine::Start{});
  ASSERT_THAT(Names(writer.On(Message(Grant({7, 8, 3, 5}, {0, 2, 3})))), ElementsAre("granted"));
  const auto put = [&](int layer) {
    return std::get<WriterMachine::Put>(
        writer.On(WriterMachine::PutLayer{layer, 0, {PageId{40}, PageId{41}, PageId{42}, PageId{43}}}).at(0));
  };
  EXPECT_THAT(put(0).sources, ElementsAre(PageId{40}, PageId{42}));
  EXPECT_THAT(put(0).destinations, ElementsAre(PageId{7}, PageId{3}));
  EXPECT_THAT(put(1).sources, ElementsAre(PageId{43}));
  EXPECT_THAT(put(1).destinations, ElementsAre(PageId{5}));
}

TEST_F(WriterTest, PutsPagesOfALaterChunkWhereTheyBelong) {
  GetGranted();
  ASSERT_THAT(PutLayer(0, 1, {PageId{41}, PageId{42}}), ElementsAre("put"));
  EXPECT_THAT(Last<WriterMachine::Put>().sources, ElementsAre(PageId{41}, PageId{42}));
  EXPECT_THAT(Last<WriterMachine::Put>().destinations, ElementsAre(PageId{8}, PageId{3}));
}

TEST_F(WriterTest, ExpectsAGrantOfAsManyPagesAsThePromptNeeds) {
  const std::pair<int, int> kCases[] = {{1, 1}, {3, 1}, {4, 1}, {5, 2}, {8, 2}, {9, 3}};
  for (const auto& [tokens, pages] : kCases) {
    for (const int granted : {pages - 1, pages, pages + 1}) {
      if (granted == 0) continue;
      WriterMachine writer(kConfig, Reserve{kAttempt, tokens, {}});
      writer.On(WriterMachine::Start{});
      Granted grant{kAttempt, {}, {}};
      for (int page = 0; page < granted; ++page) grant.pages.push_back(PageId{uint32_t(page)});
      const std::vector<std::string> names = Names(writer.On(Message(grant)));
      EXPECT_EQ(names.back(), granted == pages ? "granted" : "fail") << granted << " pages for " << tokens << " tokens";
    }
  }
}

TEST_F(WriterTest, PutsNothingBeforeTheGrantOrOutsideOfIt) {
  On(WriterMachine::Start{});
  EXPECT_THAT(PutLayer(0, 0, {PageId{40}}), IsEmpty());
  OnMessage(Grant({7, 8, 3}, {0, 1, 2}));
  EXPECT_THAT(PutLayer(0, 2, {PageId{40}, PageId{41}}), IsEmpty());
  EXPECT_THAT(PutLayer(0, -1, {PageId{40}}), IsEmpty());
  EXPECT_THAT(PutLayer(2, 0, {PageId{40}}), IsEmpty());
}

TEST_F(WriterTest, RefusesGrantsThatDoNotFitThePeersPool) {
  struct Case {
    Granted granted;
    const char* why;
  };
  for (const Case& c : {Case{Grant({7, 8}, {0, 1}), "2 pages, expected 3"}, Case{Grant({7, 8, 100}, {0}), "page 100"},
                        Case{Grant({7, 8, 7}, {0}), "twice"}, Case{Grant({7, 8, 9}, {1, 1}), "ascend"},
                        Case{Grant({7, 8, 9}, {3}), "below 3"}, Case{Grant({7, 8, 9}, {-1}), "below 3"}}) {
    WriterMachine writer(kConfig, Reserve{kAttempt, kTokens, {}});
    writer.On(WriterMachine::Start{});
    const std::vector<WriterMachine::Action> actions = writer.On(Message(c.granted));
    ASSERT_THAT(Names(actions), ElementsAre("Aborted(internal)", "fail")) << c.why;
    const Outcome& why = std::get<WriterMachine::Fail>(actions[1]).why;
    EXPECT_THAT(why.detail, HasSubstr(c.why));
    EXPECT_EQ(why.cause, Cause::kInternal);
    EXPECT_EQ(why.at_fault, Fault::kPair) << "the writer cannot tell who is wrong";
  }
}

TEST_F(WriterTest, RevokeStopsPutsAndFencesAfterTheFlush) {
  GetGranted();
  PutLayer(0, 0, {PageId{40}});
  EXPECT_THAT(OnMessage(Revoke{kAttempt}), ElementsAre("flush"));
  EXPECT_THAT(PutLayer(0, 1, {PageId{41}}), IsEmpty());
  EXPECT_THAT(On(WriterMachine::CommitSequence{{1}}), IsEmpty());
  EXPECT_THAT(On(WriterMachine::FlushDone{}), ElementsAre("Aborted(revoked)", "fail"));
  EXPECT_EQ(Last<WriterMachine::Fail>().why.cause, Cause::kRevoked);
  EXPECT_EQ(Last<WriterMachine::Fail>().why.at_fault, Fault::kNobody);
}

TEST_F(WriterTest, RevokeTurnsACommitThatStillFlushesIntoAborted) {
  GetGranted();
  On(WriterMachine::CommitSequence{{1}});
  EXPECT_THAT(OnMessage(Revoke{kAttempt}), IsEmpty());
  EXPECT_THAT(On(WriterMachine::FlushDone{}), ElementsAre("Aborted(revoked)", "fail"));
}

TEST_F(WriterTest, RevokeAfterCommitWaitsForTheAnswer) {
  GetGranted();
  On(WriterMachine::CommitSequence{{1}});
  On(WriterMachine::FlushDone{});
  EXPECT_THAT(OnMessage(Revoke{kAttempt}), IsEmpty());
  EXPECT_THAT(OnMessage(Committed{kAttempt, "revoked"}), ElementsAre("fail"));
}

TEST_F(WriterTest, FlushesAheadOfACommitWhoseOutputIsNotKnownYet) {
  GetGranted();
  PutLayer(0, 0, {PageId{40}, PageId{41}, PageId{42}});
  EXPECT_THAT(On(WriterMachine::FlushPuts{}), ElementsAre("flush"));
  EXPECT_THAT(PutLayer(1, 0, {PageId{40}, PageId{41}, PageId{42}}), IsEmpty()) << "everything was put";
  EXPECT_THAT(On(WriterMachine::FlushDone{}), ElementsAre("flushed"));
  EXPECT_THAT(On(WriterMachine::CommitSequence{{7, 8, 9}}), ElementsAre("Commit"));
  EXPECT_EQ(std::get<Commit>(Last<WriterMachine::Send>().message).output, (std::vector<TokenId>{7, 8, 9}));
  EXPECT_THAT(OnMessage(Committed{kAttempt, ""}), ElementsAre("finish"));
}

TEST_F(WriterTest, AFlushAheadOfCommitIsNoFence) {
  GetGranted();
  On(WriterMachine::FlushPuts{});
  On(WriterMachine::FlushDone{});
  WriterMachine aborting = writer_;
  EXPECT_THAT(On(Message(Revoke{kAttempt})), ElementsAre("Aborted(revoked)", "fail"));
  EXPECT_THAT(Names(aborting.On(WriterMachine::Abort{Cause::kFinished})), ElementsAre("Aborted(finished)", "release"));
}

TEST_F(WriterTest, AbortWithdrawsAReservation) {
  On(WriterMachine::Start{});
  EXPECT_THAT(On(WriterMachine::Abort{Cause::kCancelled}), ElementsAre("CancelReserve", "release"));
  EXPECT_TRUE(writer_.ended());
}

TEST_F(WriterTest, AbortOfAFinishedRequestTellsAReceiverThatStillQueuesIt) {
  On(WriterMachine::Start{});
  OnMessage(Queued{kAttempt});
  EXPECT_THAT(On(WriterMachine::Abort{Cause::kFinished}), ElementsAre("Aborted(finished)", "release"));
}

TEST_F(WriterTest, AbortReleasesOnlyAfterTheFlush) {
  GetGranted();
  PutLayer(0, 0, {PageId{40}});
  EXPECT_THAT(On(WriterMachine::Abort{Cause::kFinished}), ElementsAre("flush"));
  EXPECT_THAT(On(WriterMachine::Abort{Cause::kCancelled}), IsEmpty()) << "said twice";
  EXPECT_THAT(On(WriterMachine::FlushDone{}), ElementsAre("Aborted(finished)", "release"));
}

TEST_F(WriterTest, AbortAfterCommitNeedsNoSecondFence) {
  GetGranted();
  On(WriterMachine::CommitSequence{{1}});
  On(WriterMachine::FlushDone{});
  EXPECT_THAT(On(WriterMachine::Abort{Cause::kCancelled}), ElementsAre("release"));
}

TEST_F(WriterTest, FailedFlushGivesTheConnectionUpInsteadOfAFence) {
  GetGranted();
  PutLayer(0, 0, {PageId{40}});
  On(WriterMachine::CommitSequence{{1}});
  EXPECT_THAT(On(WriterMachine::FlushFailed{absl::UnavailableError("x")}), ElementsAre("disconnect", "fail"));
}

TEST_F(WriterTest, LostPeerEndsEveryState) {
  const auto lose = [](WriterMachine& w) {
    return Names(w.On(WriterMachine::PeerRevoked{absl::UnavailableError("gone")}));
  };
  On(WriterMachine::Start{});
  WriterMachine reserving = writer_;
  EXPECT_THAT(lose(reserving), ElementsAre("fail"));
  OnMessage(Grant({7, 8, 3}, {0, 1, 2}));
  WriterMachine granted = writer_;
  EXPECT_THAT(lose(granted), ElementsAre("fail"));
  WriterMachine aborting = writer_;
  aborting.On(WriterMachine::Abort{Cause::kCancelled});
  EXPECT_THAT(lose(aborting), ElementsAre("release"));
  On(WriterMachine::CommitSequence{{1}});
  On(WriterMachine::FlushDone{});
  EXPECT_THAT(lose(writer_), ElementsAre("fail"));
  EXPECT_THAT(lose(writer_), IsEmpty()) << "ended";
}

TEST_F(WriterTest, ARefusalIsSeenFromTheWritersSide) {
  const std::pair<Cause, Fault> kCases[] = {
      {Cause::kTooLarge, Fault::kClient}, {Cause::kOverloaded, Fault::kPeer}, {Cause::kQuarantined, Fault::kPeer},
      {Cause::kDraining, Fault::kPeer},   {Cause::kRevoked, Fault::kNobody},  {Cause::kUnknownAttempt, Fault::kNobody},
  };
  for (const auto& [cause, at_fault] : kCases) {
    SCOPED_TRACE(std::string(Name(cause)));
    WriterMachine writer(kConfig, Reserve{kAttempt, kTokens, {}});
    writer.On(WriterMachine::Start{});
    const std::vector<WriterMachine::Action> actions =
        writer.On(Message(Refused{kAttempt, cause, "the detail", absl::Seconds(3)}));
    ASSERT_THAT(Names(actions), ElementsAre("fail"));
    const Outcome& why = std::get<WriterMachine::Fail>(actions[0]).why;
    EXPECT_EQ(why.cause, cause);
    EXPECT_EQ(why.at_fault, at_fault);
    EXPECT_EQ(why.retry_after, absl::Seconds(3));
    EXPECT_THAT(why.detail, HasSubstr("the detail"));
    EXPECT_FALSE(FailsKvTransfer(why.cause));
    EXPECT_FALSE(BreaksPair(why));
    EXPECT_FALSE(AvoidsReporter(why)) << "no refusal is this worker's fault";
  }
}

TEST_F(WriterTest, EachWayToLoseAHandoffHasItsOutcome) {
  GetGranted();
  const WriterMachine granted = writer_;
  On(WriterMachine::CommitSequence{{1}});
  const WriterMachine flushing = writer_;
  On(WriterMachine::FlushDone{});
  const WriterMachine committing = writer_;
  const absl::Status gone = absl::UnavailableError("no heartbeat");
  struct Case {
    const char* name;
    WriterMachine writer;
    std::vector<WriterMachine::Event> events;
    Cause cause;
    Fault at_fault;
    bool breaks_pair;
  };
  const std::vector<Case> cases = {
      {"revoked",
       granted,
       {Message(Revoke{kAttempt}), WriterMachine::FlushDone{}},
       Cause::kRevoked,
       Fault::kNobody,
       false},
      {"flush failed", flushing, {WriterMachine::FlushFailed{gone}}, Cause::kPeerLost, Fault::kPeer, true},
      {"peer given up", committing, {WriterMachine::PeerGivenUp{gone}}, Cause::kPeerLost, Fault::kPeer, true},
      {"given up, yet flushed",
       granted,
       {WriterMachine::PeerGivenUp{gone}, WriterMachine::FlushDone{}},
       Cause::kPeerLost,
       Fault::kPeer,
       true},
      {"given up while flushing",
       flushing,
       {WriterMachine::PeerGivenUp{gone}, WriterMachine::FlushDone{}},
       Cause::kPeerLost,
       Fault::kPeer,
       true},
      {"peer revoked", granted, {WriterMachine::PeerRevoked{gone}}, Cause::kPeerLost, Fault::kPeer, true},
      {"commit mismatch", committing, {Message(Committed{kAttempt, "tag"})}, Cause::kInternal, Fault::kPair, true},
      {"commit of a revoked grant",
       committing,
       {Message(Committed{kAttempt, "revoked", Cause::kRevoked})},
       Cause::kRevoked,
       Fault::kNobody,
       false},
      {"commit of nothing",
       committing,
       {Message(Committed{kAttempt, "nothing", Cause::kUnknownAttempt})},
       Cause::kUnknownAttempt,
       Fault::kNobody,
       false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    WriterMachine writer = c.writer;
    std::vector<WriterMachine::Action> actions;
    for (const WriterMachine::Event& event : c.events) actions = writer.On(event);
    ASSERT_TRUE(std::holds_alternative<WriterMachine::Fail>(actions.back()));
    const Outcome& why = std::get<WriterMachine::Fail>(actions.back()).why;
    EXPECT_EQ(why.cause, c.cause);
    EXPECT_EQ(why.at_fault, c.at_fault);
    EXPECT_EQ(BreaksPair(why), c.breaks_pair);
    EXPECT_EQ(FailsKvTransfer(why.cause), c.breaks_pair) << "what is only withdrawn is no failed transfer";
    if (c.cause == Cause::kPeerLost) {
      EXPECT_THAT(why.detail, HasSubstr("no heartbeat"));
    }
  }
}

TEST_F(WriterTest, LateDuplicateAndForeignMessagesChangeNothing) {
  GetGranted();
  const WriterMachine before = writer_;
  for (const Message& message :
       {Message(Queued{kAttempt}), Message(Grant({1, 2, 4}, {0})), Message(Refused{kAttempt, Cause::kDraining, ""}),
        Message(Committed{kAttempt, ""}), Message(Reserve{kAttempt, 1, {}}), Message(CancelReserve{kAttempt}),
        Message(Commit{kAttempt, 1, {1}, 1}), Message(Aborted{kAttempt, Cause::kInternal})}) {
    EXPECT_THAT(OnMessage(message), IsEmpty());
    EXPECT_EQ(writer_, before);
  }
  EXPECT_THAT(On(WriterMachine::FlushDone{}), IsEmpty());
  EXPECT_THAT(On(WriterMachine::Start{}), IsEmpty());
}

TEST_F(WriterTest, AGrantNobodyWaitsForIsGivenBack) {
  EXPECT_EQ(WriterMachine::AnswerToUnknown(Grant({1}, {0})), Message(Aborted{kAttempt, Cause::kCancelled}));
  EXPECT_EQ(WriterMachine::AnswerToUnknown(Revoke{kAttempt}), std::nullopt);
  EXPECT_EQ(WriterMachine::AnswerToUnknown(Committed{kAttempt, ""}), std::nullopt);
}

}  // namespace
}  // namespace baton::handoff
