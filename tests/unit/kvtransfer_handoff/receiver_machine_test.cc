// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/handoff/receiver_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "receiver_fixture.h"
#include "tests/status_matchers.h"

namespace baton::handoff {
namespace {

using ::baton::testing::Fails;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(ReceiverTest, PagesThatAreHereAlreadyAreNeitherWantedNorWritable) {
  pages_.SetCached({'a'}, PageId{20});
  pages_.SetCached({'b'}, PageId{21});
  ASSERT_OK(receiver_.Open(Key(1), absl::Time()));
  EXPECT_THAT(From(kAnn, Reserve{Key(1), 4, {{'a'}, {'b'}, {'x'}}}), ElementsAre("1:Granted"));
  const Granted grant = LastGrant();
  ASSERT_EQ(grant.pages.size(), 4u);
  EXPECT_EQ(grant.pages[0], PageId{20});
  EXPECT_THAT(grant.wanted, ElementsAre(2, 3));
  EXPECT_FALSE(receiver_.MayWrite(kAnn, StreamOf(Key(1)), 20, 1));
  EXPECT_TRUE(receiver_.MayWrite(kAnn, StreamOf(Key(1)), ToIndex(grant.pages[2]), 1));

  Silent(kAnn);  // FakePages watches that no shared page is in quarantine
  EXPECT_EQ(pages_.quarantined(), 3);
  Alive(kAnn);
  EXPECT_THAT(From(kAnn, CommitOf(grant)), ElementsAre("1:Committed", "1:received"));
  EXPECT_EQ(std::get<ReceiverMachine::Received>(last_.back()).cached_pages, 2);
}

TEST_F(ReceiverTest, MoreHashesThanFullPagesAreNotBelieved) {
  for (const uint8_t name : {1, 2, 3}) pages_.SetCached({name}, PageId{uint32_t{20} + name});
  ASSERT_OK(receiver_.Open(Key(1), absl::Time()));
  EXPECT_THAT(From(kAnn, Reserve{Key(1), 2, {{1}, {2}, {3}}}), ElementsAre("1:Granted"));
  const Granted grant = LastGrant();
  EXPECT_EQ(grant.pages.size(), 2u);
  EXPECT_THAT(grant.wanted, IsEmpty());
  EXPECT_THAT(From(kAnn, CommitOf(grant)), ElementsAre("1:Committed", "1:received"));
  EXPECT_EQ(std::get<ReceiverMachine::Received>(last_.back()).pages.size(), 3u) << "one of its own to grow into";
}

TEST_F(ReceiverTest, ARevokedGrantLetsGoOfWhatIsSharedAtOnce) {
  pages_.SetCached({'a'}, PageId{20});
  ASSERT_OK(receiver_.Open(Key(1), absl::Time()));
  From(kAnn, Reserve{Key(1), 3, {{'a'}}});
  EXPECT_EQ(pages_.shared(), 1);
  Silent(kAnn);
  EXPECT_THAT(On(ReceiverMachine::Close{Key(1)}), ElementsAre("1:Revoke"));
  EXPECT_EQ(pages_.shared(), 0);
  EXPECT_EQ(pages_.quarantined(), 3) << "two pages of the prompt and one to grow into may still be written to";
  Revoked(kAnn);
  EXPECT_EQ(pages_.free_pages(), 10);
}

TEST_F(ReceiverTest, AGrantWhosePeerIsGivenUpLetsGoOfWhatIsShared) {
  pages_.SetCached({'a'}, PageId{20});
  ASSERT_OK(receiver_.Open(Key(1), absl::Time()));
  From(kAnn, Reserve{Key(1), 3, {{'a'}}});
  EXPECT_THAT(On(ReceiverMachine::PeerChanged{kAnn, PeerState::kGivenUp, absl::UnavailableError("not heard")}),
              ElementsAre("1:failed"));
  EXPECT_EQ(pages_.shared(), 0);
  EXPECT_EQ(pages_.quarantined(), 3) << "what it put may still land";
}

TEST_F(ReceiverTest, APromptThatIsHereAlreadyNeedsNoPut) {
  pages_.SetCached({'a'}, PageId{20});
  ASSERT_OK(receiver_.Open(Key(1), absl::Time()));
  EXPECT_THAT(From(kAnn, Reserve{Key(1), 1, {{'a'}}}), ElementsAre("1:Granted"));
  const Granted grant = LastGrant();
  EXPECT_THAT(grant.wanted, IsEmpty());
  EXPECT_THAT(From(kAnn, CommitOf(grant)), ElementsAre("1:Committed", "1:received"));
}

TEST_F(ReceiverTest, GrantsThePromptAndOnePageToGrowIntoAndHandsThemOverAtCommit) {
  EXPECT_THAT(Reserving(kAnn, 1, 3), ElementsAre("1:Granted"));
  const Granted grant = LastGrant();
  EXPECT_EQ(grant.pages.size(), 3u);
  EXPECT_THAT(grant.wanted, ElementsAre(0, 1, 2));
  EXPECT_EQ(pages_.free_pages(), 6);

  EXPECT_THAT(From(kAnn, CommitOf(grant)), ElementsAre("1:Committed", "1:received"));
  const auto& received = std::get<ReceiverMachine::Received>(last_.back());
  EXPECT_EQ(received.pages.size(), 4u);
  EXPECT_TRUE(std::equal(grant.pages.begin(), grant.pages.end(), received.pages.begin()));
  EXPECT_EQ(received.output, std::vector<TokenId>{5});
  EXPECT_EQ(pages_.free_pages(), 6) << "they are the caller's now";
  EXPECT_EQ(receiver_.counts().received, 1);
  EXPECT_THAT(On(ReceiverMachine::Close{Key(1)}), IsEmpty());
  EXPECT_EQ(receiver_.counts(), ReceiverMachine::Counts{});
}

TEST_F(ReceiverTest, AllowsWritesOnlyToTheGrantedPeerStreamAndPages) {
  Reserving(kAnn, 1, 3);  // pages 0 to 2, and 3 to grow into
  const StreamId stream = StreamOf(Key(1));
  EXPECT_TRUE(receiver_.MayWrite(kAnn, stream, 0, 3));
  EXPECT_TRUE(receiver_.MayWrite(kAnn, stream, 2, 1));
  EXPECT_FALSE(receiver_.MayWrite(kAnn, stream, 2, 2)) << "not the page to grow into";
  EXPECT_FALSE(receiver_.MayWrite(kBob, stream, 0, 1));
  EXPECT_FALSE(receiver_.MayWrite(kAnn, stream + 1, 0, 1));
  On(ReceiverMachine::Close{Key(1)});
  EXPECT_TRUE(receiver_.MayWrite(kAnn, stream, 0, 3)) << "what is under way may land until the fence";
  From(kAnn, Aborted{Key(1), Cause::kRevoked});
  EXPECT_FALSE(receiver_.MayWrite(kAnn, stream, 0, 1));
}

// Gives out pages in an order of its own.
class UnorderedPages final : public FifoAdmission {
 public:
  UnorderedPages() : FifoAdmission(kMaxWaiting) {}
  void Release(std::span<const PageId>) override {}
  void SetQuarantined(std::span<const PageId>, bool) override {}

 protected:
  GrantedPages Allocate(int count, std::span<const PageHash>) override {
    GrantedPages granted;
    for (const uint32_t page : {7, 2, 6, 3}) granted.pages.push_back(PageId{page});
    EXPECT_EQ(granted.pages.size(), size_t(count));
    return granted;
  }
  int usable_pages() const override { return 10; }
};

TEST_F(ReceiverTest, AllowsWritesToGrantedPagesInWhateverOrderTheyCome) {
  UnorderedPages pages;
  ASSERT_OK(receiver_.Open(Key(1), absl::Time()));
  receiver_.On(ReceiverMachine::From{kAnn, Reserve{Key(1), 3, {}}}, pages);
  const StreamId stream = StreamOf(Key(1));
  for (const uint32_t page : {2, 6, 7}) EXPECT_TRUE(receiver_.MayWrite(kAnn, stream, page, 1)) << page;
  EXPECT_TRUE(receiver_.MayWrite(kAnn, stream, 6, 2));
  for (const uint32_t page : {1, 3, 4, 5, 8}) EXPECT_FALSE(receiver_.MayWrite(kAnn, stream, page, 1)) << page;
  EXPECT_FALSE(receiver_.MayWrite(kAnn, stream, 2, 2));
}

TEST_F(ReceiverTest, CountsAttemptsByTheirState) {
  ASSERT_OK(receiver_.Open(Key(1), absl::Time()));
  ASSERT_OK(receiver_.Open(Key(2), absl::Time()));
  Reserving(kAnn, 3, 1);
  From(kAnn, CommitOf(LastGrant()));
  Reserving(kAnn, 4, 1);
  Reserving(kAnn, 5, 1);
  Reserving(kAnn, 6, 1);
  On(ReceiverMachine::Close{Key(5)});
  On(ReceiverMachine::Close{Key(6)});
  Reserving(kAnn, 7, 9);
  EXPECT_EQ(receiver_.counts(),
            (ReceiverMachine::Counts{.open = 2, .queued = 1, .granted = 1, .revoking = 2, .received = 1}));
}

TEST_F(ReceiverTest, RefusesPromptsOfAbsurdLength) {
  EXPECT_THAT(Reserving(kAnn, 1, 2147483647), ElementsAre("1:Refused(too_large)", "1:failed"));
}

TEST_F(ReceiverTest, RefusesAttemptsThatAreNotOpen) {
  EXPECT_THAT(From(kAnn, Reserve{Key(1), 1, {}}), ElementsAre("1:Refused(unknown_attempt)"));
  EXPECT_OK(receiver_.Open(Key(2), absl::Time()));
  On(ReceiverMachine::Close{Key(2)});
  EXPECT_THAT(From(kAnn, Reserve{Key(2), 1, {}}), ElementsAre("2:Refused(unknown_attempt)"));
}

TEST_F(ReceiverTest, OpensEachAttemptOnceAndNeverAnOlderOne) {
  EXPECT_OK(receiver_.Open(Key(1, 2), absl::Time()));
  EXPECT_TRUE(Fails(receiver_.Open(Key(1, 2), absl::Time()), absl::StatusCode::kAlreadyExists, "is open"));
  EXPECT_TRUE(Fails(receiver_.Open(Key(1, 1), absl::Time()), absl::StatusCode::kFailedPrecondition, "later"));
  On(ReceiverMachine::Close{Key(1, 2)});
  EXPECT_TRUE(Fails(receiver_.Open(Key(1, 2), absl::Time()), absl::StatusCode::kFailedPrecondition, "later"));
  EXPECT_OK(receiver_.Open(Key(1, 3), absl::Time()));
}

TEST_F(ReceiverTest, BoundsOpenAttempts) {
  for (uint64_t request = 0; request < 100; ++request) EXPECT_OK(receiver_.Open(Key(request), absl::Time()));
  EXPECT_TRUE(Fails(receiver_.Open(Key(100), absl::Time()), absl::StatusCode::kResourceExhausted, "100"));
}

TEST_F(ReceiverTest, DrainingRefusesNewWorkAndKeepsWhatWaits) {
  Reserving(kAnn, 1, 8);
  Reserving(kAnn, 2, 8);
  EXPECT_OK(receiver_.Open(Key(3), absl::Time()));
  On(ReceiverMachine::StartDraining{});
  EXPECT_TRUE(Fails(receiver_.Open(Key(4), absl::Time()), absl::StatusCode::kUnavailable, "draining"));
  EXPECT_THAT(From(kBob, Reserve{Key(3), 1, {}}), ElementsAre("3:Refused(draining)", "3:failed"));
  EXPECT_THAT(From(kAnn, Aborted{Key(1), Cause::kFinished}), ElementsAre("1:finished", "2:Granted"));
}

TEST_F(ReceiverTest, AfterTheEndOfADrainNewWorkIsTakenAgain) {
  On(ReceiverMachine::StartDraining{});
  EXPECT_TRUE(Fails(receiver_.Open(Key(1), absl::Time()), absl::StatusCode::kUnavailable, "draining"));
  On(ReceiverMachine::StopDraining{});
  EXPECT_OK(receiver_.Open(Key(1), absl::Time()));
  EXPECT_THAT(From(kAnn, Reserve{Key(1), 1, {}}), ElementsAre("1:Granted"));
}

TEST_F(ReceiverTest, DropsASequenceWhoseCommitDoesNotFit) {
  Reserving(kAnn, 1, 2);
  Commit wrong_tag = CommitOf(LastGrant());
  ++wrong_tag.tag;
  EXPECT_THAT(From(kAnn, wrong_tag), ElementsAre("1:Committed(error)", "1:failed"));
  EXPECT_EQ(pages_.free_pages(), 10) << "a Commit is a fence";

  Reserving(kAnn, 2, 2);
  Commit wrong_count = CommitOf(LastGrant());
  ++wrong_count.tokens;
  EXPECT_THAT(From(kAnn, wrong_count), ElementsAre("2:Committed(error)", "2:failed"));
  EXPECT_EQ(pages_.free_pages(), 10);
}

TEST_F(ReceiverTest, KeepsRevokedPagesUntilTheFence) {
  Reserving(kAnn, 1, 2);
  const Granted grant = LastGrant();
  EXPECT_THAT(On(ReceiverMachine::Close{Key(1)}), ElementsAre("1:Revoke"));
  EXPECT_EQ(pages_.free_pages(), 7);
  EXPECT_THAT(On(ReceiverMachine::Close{Key(1)}), IsEmpty());
  EXPECT_THAT(From(kAnn, CommitOf(grant)), ElementsAre("1:Committed(error)")) << "it crossed with Revoke";
  EXPECT_EQ(pages_.free_pages(), 10);
}

TEST_F(ReceiverTest, CancelReserveDoesNotGiveBackAGrant) {
  Reserving(kAnn, 1, 2);
  EXPECT_THAT(From(kAnn, CancelReserve{Key(1)}), IsEmpty());
  EXPECT_EQ(pages_.free_pages(), 7);
  EXPECT_THAT(From(kAnn, Aborted{Key(1), Cause::kCancelled}), ElementsAre("1:failed"));
  EXPECT_EQ(pages_.free_pages(), 10);
}

TEST_F(ReceiverTest, QuarantinesTheGrantsOfASilentPeerUntilItReturns) {
  Reserving(kAnn, 1, 2);
  const Granted grant = LastGrant();
  EXPECT_THAT(Silent(kAnn), IsEmpty());
  EXPECT_EQ(pages_.quarantined(), 3);
  Alive(kAnn);
  EXPECT_EQ(pages_.quarantined(), 0);
  Silent(kAnn);
  EXPECT_THAT(From(kAnn, CommitOf(grant)), ElementsAre("1:Committed", "1:received"));
  EXPECT_EQ(pages_.quarantined(), 0) << "a message is life";
}

TEST_F(ReceiverTest, FreesTheGrantsOfARevokedPeer) {
  Reserving(kAnn, 1, 2);
  Reserving(kAnn, 2, 2);
  Reserving(kBob, 3, 2);
  On(ReceiverMachine::Close{Key(2)});
  Silent(kAnn);
  EXPECT_THAT(Revoked(kAnn), ElementsAre("1:failed")) << "the other one was closed";
  EXPECT_EQ(std::get<ReceiverMachine::Failed>(last_[0]).why,
            Outcome(Cause::kPeerLost, Fault::kPeer, "the writer is lost: died"));
  EXPECT_EQ(pages_.free_pages(), 7);
  EXPECT_EQ(pages_.quarantined(), 0);
  EXPECT_THAT(From(kAnn, Reserve{Key(9), 1, {}}), IsEmpty()) << "it is not heard any more";
}

TEST_F(ReceiverTest, AReceivedSequenceOutlivesItsWriter) {
  Reserving(kAnn, 1, 2);
  From(kAnn, CommitOf(LastGrant()));
  EXPECT_THAT(Revoked(kAnn), IsEmpty());
  EXPECT_EQ(receiver_.counts().received, 1);
}

TEST_F(ReceiverTest, UnknownDuplicateAndForeignMessagesChangeNothing) {
  Reserving(kAnn, 1, 2);
  const Granted grant = LastGrant();
  Reserving(kAnn, 2, 9);
  const ReceiverMachine before = receiver_;
  EXPECT_THAT(From(kBob, Aborted{Key(1), Cause::kCancelled}), IsEmpty()) << "not Bob's";
  EXPECT_THAT(From(kBob, CommitOf(grant)), ElementsAre("1:Committed(error)"));
  EXPECT_THAT(From(kBob, Reserve{Key(1), 2, {}}), ElementsAre("1:Refused(unknown_attempt)"));
  EXPECT_THAT(From(kBob, CancelReserve{Key(2)}), IsEmpty());
  EXPECT_THAT(From(kAnn, Reserve{Key(1), 2, {}}), IsEmpty()) << "said twice";
  EXPECT_THAT(From(kAnn, Reserve{Key(2), 2, {}}), IsEmpty());
  EXPECT_THAT(From(kAnn, Commit{Key(2), 9, {}, 0}), ElementsAre("2:Committed(error)")) << "it only waits";
  EXPECT_THAT(From(kAnn, Aborted{Key(3), Cause::kCancelled}), IsEmpty());
  EXPECT_THAT(From(PeerId{77}, Reserve{Key(4), 1, {}}), IsEmpty()) << "nobody";
  EXPECT_THAT(From(kAnn, Granted{Key(1), {}, {}}), IsEmpty()) << "its own kind of message";
  EXPECT_THAT(On(ReceiverMachine::Close{Key(99)}), IsEmpty());
  EXPECT_EQ(receiver_, before);

  From(kAnn, CommitOf(grant));
  EXPECT_THAT(From(kAnn, CommitOf(grant)), ElementsAre("1:Committed(error)")) << "received once";
  EXPECT_THAT(From(kAnn, Aborted{Key(1), Cause::kCancelled}), IsEmpty());
  EXPECT_EQ(receiver_.counts().received, 1);
  EXPECT_EQ(pages_.free_pages(), 7) << "they are the caller's";
}

TEST_F(ReceiverTest, EachWayToLoseAnAttemptHasItsOutcome) {
  struct Case {
    const char* name;
    std::function<void()> lose;  // attempt 1 of Ann's
    Cause cause;
    Fault at_fault;
    bool fails_transfer;
    bool breaks_pair;
  };
  const auto granted = [this] { Reserving(kAnn, 1, 2); };
  const auto queued = [this] {
    Reserving(kBob, 2, 8);
    Reserving(kAnn, 1, 8);
  };
  const std::vector<Case> cases = {
      {"draining",
       [&] {
         EXPECT_OK(receiver_.Open(Key(1), absl::Time()));
         On(ReceiverMachine::StartDraining{});
         From(kAnn, Reserve{Key(1), 1, {}});
       },
       Cause::kDraining, Fault::kReporter, false, false},
      {"too large", [&] { Reserving(kAnn, 1, 100); }, Cause::kTooLarge, Fault::kClient, false, false},
      {"full queue",
       [&] {
         for (uint64_t request = 2; request < 7; ++request) Reserving(kBob, request, 8);
         Reserving(kAnn, 1, 8);
       },
       Cause::kOverloaded, Fault::kReporter, false, false},
      {"pages in quarantine",
       [&] {
         queued();
         Silent(kBob);
       },
       Cause::kQuarantined, Fault::kReporter, false, false},
      {"withdrawn",
       [&] {
         queued();
         From(kAnn, CancelReserve{Key(1)});
       },
       Cause::kCancelled, Fault::kClient, false, false},
      {"aborted by a writer that was cancelled",
       [&] {
         granted();
         From(kAnn, Aborted{Key(1), Cause::kCancelled});
       },
       Cause::kCancelled, Fault::kClient, false, false},
      {"a grant that the writer cannot use",
       [&] {
         granted();
         From(kAnn, Aborted{Key(1), Cause::kInternal});
       },
       Cause::kInternal, Fault::kPair, true, true},
      {"commit mismatch",
       [&] {
         granted();
         Commit commit = CommitOf(LastGrant());
         ++commit.tag;
         From(kAnn, commit);
       },
       Cause::kInternal, Fault::kPair, true, true},
      {"writer given up",
       [&] {
         granted();
         On(ReceiverMachine::PeerChanged{kAnn, PeerState::kGivenUp, absl::UnavailableError("mute")});
       },
       Cause::kPeerLost, Fault::kPeer, true, true},
      {"writer revoked",
       [&] {
         granted();
         Revoked(kAnn);
       },
       Cause::kPeerLost, Fault::kPeer, true, true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    receiver_ = ReceiverMachine(Config());
    pages_ = FakePages(10);
    SetUp();
    c.lose();
    std::optional<Outcome> why;
    for (const ReceiverMachine::Action& action : last_) {
      const auto* failed = std::get_if<ReceiverMachine::Failed>(&action);
      if (failed != nullptr && failed->key == Key(1)) why = failed->why;
    }
    ASSERT_TRUE(why.has_value());
    EXPECT_EQ(why->cause, c.cause);
    EXPECT_EQ(why->at_fault, c.at_fault);
    EXPECT_EQ(FailsKvTransfer(why->cause), c.fails_transfer);
    EXPECT_EQ(BreaksPair(*why), c.breaks_pair);
  }
}

TEST_F(ReceiverTest, ARefusalCarriesTheHintToComeBack) {
  for (uint64_t request = 2; request < 7; ++request) Reserving(kBob, request, 8);
  Reserving(kAnn, 1, 8);
  const auto& refused = std::get<Refused>(std::get<ReceiverMachine::Send>(last_[0]).message);
  EXPECT_GT(refused.retry_after, absl::ZeroDuration());
  EXPECT_EQ(refused.retry_after, OutcomeOf(refused).retry_after);
}

TEST_F(ReceiverTest, ACommitThatIsNotTakenNamesItsCause) {
  const auto cause_of_answer = [this](const Commit& commit) {
    From(kAnn, commit);
    return std::get<Committed>(std::get<ReceiverMachine::Send>(last_[0]).message).cause;
  };
  EXPECT_EQ(cause_of_answer(Commit{Key(1), 2, {}, 0}), Cause::kUnknownAttempt);
  Reserving(kAnn, 1, 2);
  const Commit commit = CommitOf(LastGrant());
  On(ReceiverMachine::Close{Key(1)});
  EXPECT_EQ(cause_of_answer(commit), Cause::kRevoked);
}

}  // namespace
}  // namespace baton::handoff
