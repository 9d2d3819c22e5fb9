// SPDX-License-Identifier: Apache-2.0
// Which claims the ledger grants, in which order, and which claims the ledger refuses.
#include "worker/admission/capacity_ledger.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "capacity_ledger_fixture.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::baton::testing::Fails;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// ------------------------------------------------------------------------------------------------ order

TEST_F(CapacityLedgerTest, ServesTheOldestRequestFirstWhoeverClaims) {
  Claimed(kLocal, 1, 10);
  Enqueue(kRemote, 4, 1);
  Enqueue(kLocal, 3, 1);
  Enqueue(kRemote, 2, 9);
  Enqueue(kLocal, 5, 9);
  EXPECT_THAT(Decided(kLocal), IsEmpty());
  End(kLocal, 1);
  EXPECT_THAT(Decided(kRemote), ElementsAre("2"));
  EXPECT_THAT(Decided(kLocal), ElementsAre("3"));
  End(kRemote, 2);
  EXPECT_THAT(Decided(kRemote), ElementsAre("4"));
  EXPECT_THAT(Decided(kLocal), IsEmpty()) << "5 needs 9 pages, 8 are free";
}

TEST_F(CapacityLedgerTest, ServesUrgentClaimsBeforeOlderOnes) {
  Claimed(kLocal, 1, 10);
  Enqueue(kLocal, 2, 10);
  Enqueue(kRemote, 4, 5);
  Ledger::Claim urgent = Claim(kRemote, 5, 5);
  urgent.urgent = true;
  EXPECT_OK(ledger_->Enqueue(urgent));
  urgent = Claim(kLocal, 3, 5);
  urgent.urgent = true;
  EXPECT_OK(ledger_->Enqueue(urgent));
  End(kLocal, 1);
  EXPECT_THAT(Decided(kLocal), ElementsAre("3")) << "the older of the urgent claims";
  EXPECT_THAT(Decided(kRemote), ElementsAre("5"));
}

TEST_F(CapacityLedgerTest, ARequestThatComesBackKeepsItsPlace) {
  Claimed(kLocal, 1, 10);
  Enqueue(kLocal, 3, 10);
  Enqueue(kLocal, 2, 10);  // preempted before, for instance
  End(kLocal, 1);
  EXPECT_THAT(Decided(kLocal), ElementsAre("2"));
}

// ------------------------------------------------------------------------------------------------ passing

TEST_F(CapacityLedgerTest, PassesAClaimMaxBypassTimesAndNotOnceMore) {
  Claimed(kRemote, 1, 3);
  EXPECT_THAT(Claimed(kRemote, 2, 9), IsEmpty());
  EXPECT_THAT(Claimed(kLocal, 3, 2), ElementsAre("3"));
  EXPECT_THAT(Claimed(kRemote, 4, 2), ElementsAre("4"));
  EXPECT_THAT(Claimed(kLocal, 5, 2), IsEmpty()) << "3 pages are free, but 2 was passed twice";
  End(kLocal, 3);
  End(kRemote, 4);
  EXPECT_THAT(Decided(kLocal), IsEmpty());
  End(kRemote, 1);
  EXPECT_THAT(Decided(kRemote), ElementsAre("2"));
  EXPECT_THAT(Decided(kLocal), IsEmpty());
  End(kRemote, 2);
  EXPECT_THAT(Decided(kLocal), ElementsAre("5"));
}

TEST_F(CapacityLedgerTest, ReservationsDoNotPassALocalPromptForEverEither) {
  Claimed(kLocal, 1, 3);
  EXPECT_THAT(Claimed(kLocal, 2, 9), IsEmpty());
  EXPECT_THAT(Claimed(kRemote, 3, 1), ElementsAre("3"));
  EXPECT_THAT(Claimed(kRemote, 4, 1), ElementsAre("4"));
  EXPECT_THAT(Claimed(kRemote, 5, 1), IsEmpty());
}

TEST_F(CapacityLedgerTest, NobodyPassesWhenMaxBypassIsZero) {
  Start({.max_bypass = 0, .growth_watermark_pages = 0});
  Claimed(kLocal, 1, 3);
  EXPECT_THAT(Claimed(kRemote, 2, 9), IsEmpty());
  EXPECT_THAT(Claimed(kLocal, 3, 1), IsEmpty());
  End(kLocal, 1);
  EXPECT_THAT(Decided(kRemote), ElementsAre("2"));
  EXPECT_THAT(Decided(kLocal), ElementsAre("3"));
}

TEST_F(CapacityLedgerTest, EveryClaimThatIsPassedCountsIt) {
  Claimed(kRemote, 1, 3);
  Claimed(kRemote, 2, 9);
  Claimed(kLocal, 3, 9);
  EXPECT_THAT(Claimed(kRemote, 4, 1), ElementsAre("4"));
  EXPECT_THAT(Claimed(kRemote, 5, 1), ElementsAre("5"));
  ledger_->Withdraw(kRemote, RequestKey(2));
  EXPECT_THAT(Claimed(kRemote, 6, 1), IsEmpty()) << "3 was passed twice as well";
}

TEST_F(CapacityLedgerTest, AGrantInTheOrderOfTheListPassesNobody) {
  Start({.max_bypass = 1, .growth_watermark_pages = 0});
  Claimed(kLocal, 1, 10);
  Enqueue(kLocal, 2, 1);
  Enqueue(kRemote, 3, 1);
  Enqueue(kLocal, 4, 9);
  Enqueue(kLocal, 5, 1);
  Enqueue(kLocal, 6, 1);
  End(kLocal, 1);
  EXPECT_THAT(Decided(kRemote), ElementsAre("3"));
  EXPECT_THAT(Decided(kLocal), ElementsAre("2", "5")) << "5 passes 4, 6 would be the second";
}

// ------------------------------------------------------------------------------------------------ hold

TEST_F(CapacityLedgerTest, AClaimOnHoldNeitherAdvancesNorHoldsOthersUp) {
  Claimed(kLocal, 1, 3);
  Enqueue(kRemote, 2, 9);
  ledger_->Hold(kRemote, RequestKey(2), true);
  for (uint64_t request = 3; request < 7; ++request) {
    EXPECT_THAT(Claimed(kLocal, request, 1), ElementsAre(absl::StrCat(request))) << "more than twice";
    End(kLocal, request);
  }
  ledger_->Hold(kRemote, RequestKey(2), false);
  EXPECT_THAT(Claimed(kLocal, 7, 1), ElementsAre("7")) << "passed while on hold does not count";
  End(kLocal, 7);
  ledger_->Hold(kRemote, RequestKey(2), true);
  End(kLocal, 1);
  EXPECT_THAT(Decided(kRemote), IsEmpty());
  ledger_->Hold(kRemote, RequestKey(2), false);
  EXPECT_THAT(Decided(kRemote), ElementsAre("2"));
}

TEST_F(CapacityLedgerTest, AWriterThatIsHeardAgainPassesNobodyMoreOftenThanThat) {
  Claimed(kLocal, 1, 3);
  Claimed(kLocal, 2, 7);  // no page is left
  Enqueue(kRemote, 3, 9);
  for (uint64_t request = 4; request < 7; ++request) {
    Enqueue(kRemote, request, 1);
    ledger_->Hold(kRemote, RequestKey(request), true);
  }
  End(kLocal, 2);
  EXPECT_THAT(Decided(kRemote), IsEmpty());
  for (uint64_t request = 4; request < 7; ++request) ledger_->Hold(kRemote, RequestKey(request), false);
  EXPECT_THAT(Decided(kRemote), ElementsAre("4", "5")) << "6 would fit, but passes 3 once more";
}

// ------------------------------------------------------------------------------------------------ slots, pages

TEST_F(CapacityLedgerTest, OneSlotOneGrant) {
  Start({.max_sequences = 2, .growth_watermark_pages = 0});
  EXPECT_THAT(Claimed(kLocal, 1, 1), ElementsAre("1"));
  EXPECT_THAT(Claimed(kRemote, 2, 1), ElementsAre("2"));
  EXPECT_THAT(Claimed(kRemote, 3, 1), IsEmpty());
  EXPECT_THAT(Claimed(kLocal, 4, 1), IsEmpty());
  FreePages(1);
  EXPECT_THAT(Decided(kRemote), IsEmpty()) << "its slot is taken still";
  ledger_->Leave(kLocal, RequestKey(1));
  EXPECT_THAT(Decided(kLocal), IsEmpty());
  EXPECT_THAT(Decided(kRemote), ElementsAre("3"));
  ledger_->Leave(kLocal, RequestKey(1));
  EXPECT_THAT(Decided(kLocal), IsEmpty()) << "it has left already";
}

TEST_F(CapacityLedgerTest, TakesAllPagesOrNone) {
  Claimed(kLocal, 1, 4);
  EXPECT_THAT(Claimed(kRemote, 2, 7), IsEmpty());
  EXPECT_EQ(free_pages(), 6);
  EXPECT_EQ(slots(), 1);
  End(kLocal, 1);
  EXPECT_THAT(Decided(kRemote), ElementsAre("2"));
  EXPECT_EQ(held_[2].size(), 7u);
  EXPECT_EQ(free_pages(), 3);
}

TEST_F(CapacityLedgerTest, GrantsLeaveAPagePerSequenceToGrowInto) {
  Start({.growth_watermark_pages = 2});
  EXPECT_THAT(Claimed(kRemote, 1, 3), ElementsAre("1"));
  EXPECT_THAT(Claimed(kLocal, 2, 7), IsEmpty()) << "7 pages are free, but one sequence needs one";
  ledger_->Withdraw(kLocal, RequestKey(2));
  EXPECT_THAT(Claimed(kLocal, 3, 2), ElementsAre("3"));
  EXPECT_THAT(Claimed(kLocal, 4, 1), ElementsAre("4"));
  EXPECT_THAT(Claimed(kLocal, 5, 3), IsEmpty()) << "4 pages are free, 2 stay free at most";
  EXPECT_THAT(Claimed(kLocal, 6, 2), ElementsAre("6"));
}

TEST_F(CapacityLedgerTest, AnEmptyWorkerTakesTheClaimThatJustFits) {
  Start({.growth_watermark_pages = 8});
  EXPECT_THAT(Claimed(kLocal, 1, 10), ElementsAre("1"));
}

TEST_F(CapacityLedgerTest, PublishedPagesAreShared) {
  const PageHash name{7};
  std::vector<PageRef> page = *pool_->Allocate(1);
  page[0] = pool_->Publish(std::move(page[0]), name, nullptr);
  Claimed(kLocal, 1, 6);
  Ledger::Claim claim = Claim(kRemote, 2, 4);
  claim.names = {name};
  EXPECT_OK(ledger_->Enqueue(claim));
  std::vector<Ledger::Decision> decisions = ledger_->TakeDecisions(kRemote);
  ASSERT_EQ(decisions.size(), 1u) << "3 pages are free and one is shared";
  EXPECT_EQ(decisions[0].pages->cached, 1);
  EXPECT_EQ(decisions[0].pages->pages[0].id(), page[0].id());
}

// ------------------------------------------------------------------------------------------------ refusals

TEST_F(CapacityLedgerTest, RefusesWhatNeedsPagesInQuarantine) {
  Claimed(kRemote, 1, 4);
  Enqueue(kLocal, 2, 7);
  Enqueue(kLocal, 3, 10);
  EXPECT_THAT(Decided(kLocal), IsEmpty()) << "they wait";
  for (PageRef& page : held_[1]) page.SetQuarantined(true);
  EXPECT_THAT(Decided(kRemote), IsEmpty());
  EXPECT_EQ(local_wakes_, 1);
  std::vector<Ledger::Decision> decisions = ledger_->TakeDecisions(kLocal);
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_TRUE(Fails(decisions[0].pages, absl::StatusCode::kResourceExhausted, "7 KV pages are needed, 4 of 10 are in"));
  EXPECT_THAT(Claimed(kRemote, 4, 7), ElementsAre("4:refused"));
  EXPECT_THAT(Claimed(kRemote, 5, 6), ElementsAre("5"));
  EXPECT_EQ(slots(), 2) << "a refused claim holds no slot";
  for (PageRef& page : held_[1]) page.SetQuarantined(false);
}

TEST_F(CapacityLedgerTest, RefusesMoreReservationsThanMayWait) {
  Start({.max_waiting_reservations = 2, .growth_watermark_pages = 0});
  Claimed(kLocal, 1, 10);
  Enqueue(kRemote, 2, 1);
  Enqueue(kRemote, 3, 1);
  EXPECT_TRUE(Fails(ledger_->Enqueue(Claim(kRemote, 4, 1)), absl::StatusCode::kResourceExhausted, "2 reservations"));
  Enqueue(kLocal, 5, 1);
  EXPECT_EQ(ledger_->counts().waiting_local, 1);
  EXPECT_EQ(ledger_->counts().waiting_reservations, 2);
}

// ------------------------------------------------------------------------------------------------ withdrawal

TEST_F(CapacityLedgerTest, AWithdrawnClaimNoLongerHoldsOthersUp) {
  Start({.max_bypass = 0, .growth_watermark_pages = 0});
  Claimed(kLocal, 1, 3);
  Claimed(kRemote, 2, 9);
  Claimed(kLocal, 3, 1);
  EXPECT_EQ(local_wakes_, 0);
  EXPECT_THAT(ledger_->Withdraw(kRemote, RequestKey(2)), IsEmpty());
  EXPECT_EQ(local_wakes_, 1);
  EXPECT_THAT(Decided(kLocal), ElementsAre("3"));
  EXPECT_THAT(ledger_->Withdraw(kRemote, RequestKey(2)), IsEmpty()) << "once more";
}

TEST_F(CapacityLedgerTest, AWithdrawnGrantGivesItsPagesAndSlotBack) {
  Start({.max_sequences = 1, .growth_watermark_pages = 0});
  Claimed(kLocal, 1, 10);
  Claimed(kRemote, 2, 10);
  Claimed(kLocal, 3, 10);
  End(kLocal, 1);
  EXPECT_EQ(remote_wakes_, 1);
  EXPECT_EQ(ledger_->counts().waiting_reservations, 0) << "granted, and nobody has taken it";
  EXPECT_EQ(slots(), 1);
  std::vector<PageRef> pages = ledger_->Withdraw(kRemote, RequestKey(2));
  EXPECT_EQ(pages.size(), 10u);
  EXPECT_EQ(slots(), 0);
  pages.clear();
  EXPECT_THAT(Decided(kLocal), ElementsAre("3"));
  EXPECT_THAT(Decided(kRemote), IsEmpty());
}

TEST_F(CapacityLedgerTest, OneKeyMayClaimBothAsPromptAndAsReservation) {
  Claimed(kLocal, 1, 10);
  Enqueue(kLocal, 2, 1);
  Enqueue(kRemote, 2, 1);
  ledger_->Withdraw(kRemote, RequestKey(2));
  EXPECT_EQ(ledger_->counts().waiting_local, 1);
  EXPECT_EQ(ledger_->counts().waiting_reservations, 0);
}

// ------------------------------------------------------------------------------------------------ limits

TEST_F(CapacityLedgerTest, NewLimitsHoldForLaterDecisionsOnly) {
  EXPECT_THAT(Claimed(kLocal, 1, 2), ElementsAre("1"));
  EXPECT_THAT(Claimed(kLocal, 2, 2), ElementsAre("2"));
  ledger_->SetLimits({.max_sequences = 2, .max_waiting_reservations = 0, .max_bypass = 0, .growth_watermark_pages = 0});
  EXPECT_TRUE(Fails(ledger_->Enqueue(Claim(kRemote, 3, 1)), absl::StatusCode::kResourceExhausted, "0 reservations"));
  EXPECT_THAT(Claimed(kLocal, 4, 1), IsEmpty()) << "both slots are in use";
  EXPECT_EQ(slots(), 2);
  ledger_->SetLimits({.max_sequences = 3, .max_bypass = 2, .growth_watermark_pages = 0});
  EXPECT_THAT(Decided(kLocal), ElementsAre("4"));
}

}  // namespace
}  // namespace baton
