// SPDX-License-Identifier: Apache-2.0
// Whom the ledger tells of grants and of free pages, and when.
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "capacity_ledger_fixture.h"
#include "tests/status_matchers.h"
#include "worker/admission/capacity_ledger.h"

namespace baton {
namespace {

using ::baton::testing::Fails;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// ------------------------------------------------------------------------------------------------ hooks

TEST_F(CapacityLedgerTest, AFreedPageIsGrantedAtOnceAndTheClaimantTold) {
  Claimed(kLocal, 1, 10);
  Claimed(kRemote, 2, 5);
  Claimed(kLocal, 3, 5);
  EXPECT_EQ(local_wakes_ + remote_wakes_, 0) << "a claimant that asks needs no call";
  FreePages(1);
  EXPECT_EQ(slots(), 3) << "without any call of TakeDecisions";
  EXPECT_EQ(local_wakes_, 1);
  EXPECT_EQ(remote_wakes_, 1);
}

TEST_F(CapacityLedgerTest, LeavingWakesTheOtherSideAndNoReservationWakesItsOwn) {
  Start({.max_sequences = 1, .growth_watermark_pages = 0});
  Claimed(kLocal, 1, 1);
  Claimed(kRemote, 2, 1);
  Claimed(kRemote, 3, 1);
  Claimed(kLocal, 4, 1);
  ledger_->Leave(kLocal, RequestKey(1));
  EXPECT_EQ(remote_wakes_, 1);
  EXPECT_THAT(Decided(kRemote), ElementsAre("2"));
  ledger_->Leave(kRemote, RequestKey(2));
  EXPECT_EQ(remote_wakes_, 1) << "3 is granted to the caller itself";
  EXPECT_THAT(Decided(kRemote), ElementsAre("3"));
  EXPECT_EQ(local_wakes_, 0);
  ledger_->Leave(kRemote, RequestKey(3));
  EXPECT_EQ(local_wakes_, 1);
  EXPECT_THAT(Decided(kLocal), ElementsAre("4"));
}

// The endpoint holds the mutex that its own hook would take.
TEST_F(CapacityLedgerTest, NoCallForAReservationRunsTheHookOfReservations) {
  Start({.max_bypass = 0, .growth_watermark_pages = 0});
  EXPECT_THAT(Claimed(kRemote, 1, 3), ElementsAre("1"));
  Claimed(kRemote, 2, 9);
  Claimed(kRemote, 3, 1);
  ledger_->Withdraw(kRemote, RequestKey(2));
  EXPECT_THAT(Decided(kRemote), ElementsAre("3"));
  EXPECT_EQ(remote_wakes_, 0);
}

TEST_F(CapacityLedgerTest, HooksMayCallTheLedger) {
  std::vector<std::string> decided;
  ledger_->SetHooks({.on_local = nullptr, .on_reservation = [&] { decided = Decided(kRemote); }});
  Claimed(kLocal, 1, 10);
  Claimed(kRemote, 2, 5);
  End(kLocal, 1);
  EXPECT_THAT(decided, ElementsAre("2"));
}

// ------------------------------------------------------------------------------------------------ growth

TEST_F(CapacityLedgerTest, AFailedGrowthIsToldOfFreePages) {
  Claimed(kLocal, 1, 4);
  Claimed(kRemote, 2, 6);
  FreePages(2);
  EXPECT_EQ(local_wakes_, 0) << "nobody waits for pages";
  std::vector<PageRef> others = *pool_->Allocate(6);
  EXPECT_TRUE(Fails(ledger_->Grow(1), absl::StatusCode::kResourceExhausted, "available"));
  EXPECT_EQ(local_wakes_, 0);
  pool_->Release(std::move(others));
  EXPECT_EQ(local_wakes_, 1);
  ASSERT_OK_AND_ASSIGN(std::vector<PageRef> grown, ledger_->Grow(2));
  EXPECT_EQ(grown.size(), 2u);
}

TEST_F(CapacityLedgerTest, AFailedGrowthIsToldOfPagesInQuarantine) {
  Claimed(kRemote, 1, 10);
  EXPECT_FALSE(ledger_->Grow(1).ok());
  for (PageRef& page : held_[1]) page.SetQuarantined(true);
  EXPECT_THAT(Decided(kRemote), IsEmpty());
  EXPECT_EQ(local_wakes_, 1) << "the sequence may wait in vain";
  EXPECT_THAT(Decided(kRemote), IsEmpty());
  EXPECT_EQ(local_wakes_, 1) << "told once";
}

TEST_F(CapacityLedgerTest, AFailedGrowthIsToldAlsoWhenItsOwnThreadFindsTheQuarantine) {
  Claimed(kRemote, 1, 10);
  EXPECT_FALSE(ledger_->Grow(1).ok());
  for (PageRef& page : held_[1]) page.SetQuarantined(true);
  EXPECT_THAT(Decided(kLocal), IsEmpty());
  EXPECT_EQ(local_wakes_, 1) << "the tick that takes decisions grows no sequence any more";
  EXPECT_FALSE(ledger_->Grow(1).ok());
  FreePages(1);
  EXPECT_EQ(local_wakes_, 2);
}

TEST_F(CapacityLedgerTest, GrantsLeaveWhatAFailedGrowthAskedFor) {
  Claimed(kLocal, 1, 5);
  Claimed(kRemote, 2, 5);
  Claimed(kRemote, 3, 5);
  EXPECT_FALSE(ledger_->Grow(1).ok());
  FreePages(2);  // preempted for it
  EXPECT_THAT(Decided(kRemote), IsEmpty());
  ASSERT_OK_AND_ASSIGN(std::vector<PageRef> grown, ledger_->Grow(1));
  EXPECT_THAT(Decided(kRemote), IsEmpty()) << "4 pages are left";
  EXPECT_THAT(Claimed(kRemote, 4, 4), ElementsAre("4")) << "the growth has its page";
}

TEST_F(CapacityLedgerTest, AGrowthThatIsNoLongerWantedHoldsNobodyUp) {
  Claimed(kLocal, 1, 10);
  Claimed(kRemote, 2, 10);
  EXPECT_FALSE(ledger_->Grow(1).ok());
  EXPECT_THAT(Decided(kLocal), IsEmpty());
  End(kLocal, 1);  // cancelled, for instance
  EXPECT_THAT(Decided(kRemote), IsEmpty());
  EXPECT_THAT(Decided(kLocal), IsEmpty()) << "a tick in which nothing grows";
  EXPECT_EQ(remote_wakes_, 1);
  EXPECT_THAT(Decided(kRemote), ElementsAre("2"));
}

}  // namespace
}  // namespace baton
