// SPDX-License-Identifier: Apache-2.0
// The claims that a ReceiverMachine makes at its Admission, and how the machine carries out decisions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/time.h"
#include "receiver_fixture.h"

namespace baton::handoff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Time kArrival = absl::FromUnixSeconds(7);

TEST_F(ReceiverTest, ClaimsThePagesOfThePromptAndOneMoreAtTheRequestsAge) {
  Reserving(kBob, 1, 9);  // all pages
  ASSERT_OK(receiver_.Open(Key(2), kArrival));
  EXPECT_THAT(From(kAnn, Reserve{Key(2), 3, {{'a'}, {'b'}}}), ElementsAre("2:Queued"));
  EXPECT_EQ(pages_.last_claim().key, Key(2));
  EXPECT_EQ(pages_.last_claim().due, kArrival);
  EXPECT_EQ(pages_.last_claim().pages, 4);
  EXPECT_THAT(pages_.last_claim().names, ElementsAre(PageHash{'a'}, PageHash{'b'}));
}

TEST_F(ReceiverTest, GrantsAfterWhateverEventWhatIsDecidedThen) {
  Reserving(kAnn, 1, 8);
  EXPECT_THAT(Reserving(kBob, 2, 8), ElementsAre("2:Queued"));
  EXPECT_THAT(Reserving(kAnn, 3, 8), ElementsAre("3:Queued"));
  EXPECT_THAT(On(ReceiverMachine::Decided{}), IsEmpty());
  EXPECT_THAT(From(kAnn, Aborted{Key(1), Cause::kFinished}), ElementsAre("1:finished", "2:Granted"));
  EXPECT_THAT(From(kBob, Aborted{Key(2), Cause::kCancelled}), ElementsAre("2:failed", "3:Granted"));
}

TEST_F(ReceiverTest, ASlotIsHeldWhileGrantedAndWhileReceived) {
  Reserving(kAnn, 1, 1);
  const Granted grant = LastGrant();
  EXPECT_EQ(pages_.slots(), 1);
  From(kAnn, CommitOf(grant));
  EXPECT_EQ(pages_.slots(), 1) << "the sequence runs";
  On(ReceiverMachine::Close{Key(1)});
  EXPECT_EQ(pages_.slots(), 0);
}

TEST_F(ReceiverTest, ARevokedGrantHoldsItsPagesAndNoSlot) {
  Reserving(kAnn, 1, 2);
  On(ReceiverMachine::Close{Key(1)});
  EXPECT_EQ(pages_.slots(), 0);
  EXPECT_EQ(pages_.free_pages(), 7);
  From(kAnn, Aborted{Key(1), Cause::kRevoked});
  EXPECT_EQ(pages_.slots(), 0) << "left once";
  EXPECT_EQ(pages_.free_pages(), 10);
}

TEST_F(ReceiverTest, EveryEndOfAGrantGivesItsSlotBack) {
  Reserving(kAnn, 1, 1);
  From(kAnn, Aborted{Key(1), Cause::kCancelled});
  EXPECT_EQ(pages_.slots(), 0) << "aborted";
  Reserving(kAnn, 2, 1);
  Commit wrong = CommitOf(LastGrant());
  ++wrong.tag;
  From(kAnn, wrong);
  EXPECT_EQ(pages_.slots(), 0) << "not what was granted";
  Reserving(kBob, 3, 1);
  On(ReceiverMachine::PeerChanged{kBob, PeerState::kGivenUp, absl::UnavailableError("not heard")});
  EXPECT_EQ(pages_.slots(), 0) << "given up";
  Reserving(kAnn, 4, 1);
  Revoked(kAnn);
  EXPECT_EQ(pages_.slots(), 0) << "writer lost";
}

TEST_F(ReceiverTest, EveryEndOfAReservationThatWaitsWithdrawsItsClaim) {
  Reserving(kBob, 1, 9);  // all pages
  Reserving(kAnn, 2, 1);
  EXPECT_THAT(From(kAnn, CancelReserve{Key(2)}), ElementsAre("2:failed"));
  EXPECT_EQ(pages_.waiting(), 0);
  Reserving(kAnn, 3, 1);
  EXPECT_THAT(On(ReceiverMachine::Close{Key(3)}), ElementsAre("3:Refused(revoked)"));
  EXPECT_EQ(pages_.waiting(), 0);
  Reserving(kAnn, 4, 1);
  EXPECT_THAT(From(kAnn, Aborted{Key(4), Cause::kFinished}), ElementsAre("4:finished"));
  EXPECT_EQ(pages_.waiting(), 0);
  Reserving(kAnn, 5, 1);
  EXPECT_THAT(Revoked(kAnn), ElementsAre("5:failed"));
  EXPECT_EQ(pages_.waiting(), 0);
}

TEST_F(ReceiverTest, RefusesMoreThanMayWait) {
  Reserving(kAnn, 1, 9);
  for (uint64_t request = 2; request < 2 + kMaxWaiting; ++request) Reserving(kAnn, request, 1);
  EXPECT_THAT(Reserving(kBob, 9, 1), ElementsAre("9:Refused(overloaded)", "9:failed"));
  EXPECT_EQ(receiver_.counts().queued, kMaxWaiting);
}

TEST_F(ReceiverTest, RefusesAPromptThatIsLargerThanThePool) {
  EXPECT_THAT(Reserving(kAnn, 1, 10), ElementsAre("1:Refused(too_large)", "1:failed"));
  EXPECT_THAT(Reserving(kAnn, 2, 9), ElementsAre("2:Granted")) << "10 pages";
}

TEST_F(ReceiverTest, ARevokedPeerLeavesTheQueue) {
  Reserving(kAnn, 1, 8);
  Reserving(kAnn, 2, 8);
  Reserving(kBob, 3, 8);
  EXPECT_THAT(Revoked(kAnn), ElementsAre("1:failed", "2:failed", "3:Granted"));
}

TEST_F(ReceiverTest, CarriesOutARefusalBecauseOfQuarantine) {
  Reserving(kAnn, 1, 4);
  Reserving(kBob, 2, 8);
  EXPECT_THAT(Silent(kAnn), ElementsAre("2:Refused(quarantined)", "2:failed"));
  EXPECT_THAT(Reserving(kBob, 3, 8), ElementsAre("3:Refused(quarantined)", "3:failed")) << "never queued";
  EXPECT_THAT(Reserving(kBob, 4, 4), ElementsAre("4:Granted"));
}

TEST_F(ReceiverTest, ASilentPeersReservationIsOnHoldUntilThePeerIsHeard) {
  Reserving(kBob, 1, 8);
  Reserving(kAnn, 2, 1);
  Silent(kAnn);
  EXPECT_THAT(From(kBob, Aborted{Key(1), Cause::kFinished}), ElementsAre("1:finished"));
  EXPECT_THAT(Reserving(kBob, 3, 1), ElementsAre("3:Granted"));
  EXPECT_THAT(Alive(kAnn), ElementsAre("2:Granted"));
}

// An Admission that decided before it heard of the hold, as another thread may.
class HastyPages final : public FifoAdmission {
 public:
  HastyPages() : FifoAdmission(kMaxWaiting) {}
  void Hold(const AttemptKey&, bool) override {}
  void Release(std::span<const PageId>) override {}
  void SetQuarantined(std::span<const PageId> pages, bool quarantined) override {
    quarantined_ += quarantined ? int(pages.size()) : -int(pages.size());
  }
  int quarantined() const { return quarantined_; }
  bool full = true;

 protected:
  GrantedPages Allocate(int, std::span<const PageHash>) override {
    if (full) return {};
    return {.pages = {PageId{1}, PageId{2}, PageId{3}}, .cached = 1};
  }
  int usable_pages() const override { return 10; }

 private:
  int quarantined_ = 0;
};

TEST_F(ReceiverTest, AGrantToAWriterThatHasFallenSilentIsInQuarantine) {
  HastyPages pages;
  ASSERT_OK(receiver_.Open(Key(1), kArrival));
  receiver_.On(ReceiverMachine::From{kAnn, Reserve{Key(1), 2, {{'a'}}}}, pages);
  pages.full = false;
  receiver_.On(ReceiverMachine::PeerChanged{kAnn, PeerState::kSilent, {}}, pages);
  EXPECT_EQ(receiver_.counts().granted, 1);
  EXPECT_EQ(pages.quarantined(), 2) << "all but the shared page";
  receiver_.On(ReceiverMachine::PeerChanged{kAnn, PeerState::kAlive, {}}, pages);
  EXPECT_EQ(pages.quarantined(), 0);
}

}  // namespace
}  // namespace baton::handoff
