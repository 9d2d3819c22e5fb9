// SPDX-License-Identifier: Apache-2.0
#include "worker/admission/capacity_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "engine/kv/page_pool.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::baton::testing::Fails;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const KvLayout kLayout(1, {.kv_heads = 1, .head_dim = 4, .page_tokens = 4, .dtype = KvType::kF32});
constexpr uint32_t kPages = 10;
constexpr auto kLocal = CapacityLedger::Claimant::kLocalPrompt;
constexpr auto kRemote = CapacityLedger::Claimant::kReservation;

AttemptKey RequestKey(uint64_t request) { return {.request = {0, request}, .attempt = 1}; }

// A ledger of a pool of ten pages. Requests are numbered by age, and decisions written as "<request>", or
// "<request>:refused".
class CapacityLedgerTest : public ::testing::Test {
 protected:
  using Ledger = CapacityLedger;

  CapacityLedgerTest() { Start({.max_bypass = 2, .growth_watermark_pages = 0}); }
  ~CapacityLedgerTest() override { pool_->set_on_free(nullptr); }

  void Start(const Ledger::Limits& limits) {
    held_.clear();
    if (pool_ != nullptr) pool_->set_on_free(nullptr);
    ledger_.reset();
    pool_ = *PagePool::Create(kLayout, kPages);
    ledger_ = std::make_unique<Ledger>(pool_.get(), limits);
    ledger_->SetHooks({.on_local = [this] { ++local_wakes_; }, .on_reservation = [this] { ++remote_wakes_; }});
    pool_->set_on_free([this] { ledger_->OnPagesFree(); });
  }

  static Ledger::Claim Claim(Ledger::Claimant claimant, uint64_t request, int pages) {
    return {.claimant = claimant,
            .age = {absl::FromUnixSeconds(static_cast<int64_t>(request)), RequestKey(request)},
            .pages = pages,
            .names = {}};
  }
  void Enqueue(Ledger::Claimant claimant, uint64_t request, int pages) {
    EXPECT_OK(ledger_->Enqueue(Claim(claimant, request, pages)));
  }
  // Takes what is decided for `claimant` and keeps the pages.
  std::vector<std::string> Decided(Ledger::Claimant claimant) {
    std::vector<std::string> names;
    for (Ledger::Decision& decision : ledger_->TakeDecisions(claimant)) {
      const uint64_t request = decision.key.request.low;
      names.push_back(absl::StrCat(request, decision.pages.ok() ? "" : ":refused"));
      if (decision.pages.ok()) held_[request] = std::move(decision.pages->pages);
    }
    return names;
  }
  std::vector<std::string> Claimed(Ledger::Claimant claimant, uint64_t request, int pages) {
    Enqueue(claimant, request, pages);
    return Decided(claimant);
  }
  // Gives back the pages, then the slot.
  void End(Ledger::Claimant claimant, uint64_t request) {
    FreePages(request);
    ledger_->Leave(claimant, RequestKey(request));
  }
  void FreePages(uint64_t request) { pool_->Release(std::exchange(held_[request], {})); }
  int slots() { return ledger_->counts().slots_used; }
  int free_pages() { return static_cast<int>(pool_->counts().available()); }

  int local_wakes_ = 0;
  int remote_wakes_ = 0;
  std::unique_ptr<PagePool> pool_;
  std::unique_ptr<Ledger> ledger_;
  std::map<uint64_t, std::vector<PageRef>> held_;
};

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

// ------------------------------------------------------------------------------------------------ threads

// One side's claimants: what they have taken, under a lock of the side's own, as the workers do it.
class Side {
 public:
  Side(CapacityLedger* ledger, CapacityLedger::Claimant claimant) : ledger_(*ledger), claimant_(claimant) {}

  void Take() {
    const MutexLock lock(mutex_);
    TakeLocked();
  }
  // Empty: not granted yet.
  std::vector<PageRef> TakeFor(const AttemptKey& key) {
    const MutexLock lock(mutex_);
    TakeLocked();
    return Extract(key);
  }
  // The pages of a grant that came first.
  std::vector<PageRef> GiveUp(const AttemptKey& key) {
    const MutexLock lock(mutex_);
    std::vector<PageRef> pages = ledger_.Withdraw(claimant_, key);
    return pages.empty() ? Extract(key) : std::move(pages);
  }
  bool empty() {
    const MutexLock lock(mutex_);
    return taken_.empty();
  }

 private:
  void TakeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (CapacityLedger::Decision& decision : ledger_.TakeDecisions(claimant_)) {
      taken_[decision.key] = std::move(decision.pages->pages);
    }
  }
  std::vector<PageRef> Extract(const AttemptKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<PageRef> pages;
    if (const auto it = taken_.find(key); it != taken_.end()) {
      pages = std::move(it->second);
      taken_.erase(it);
    }
    return pages;
  }

  CapacityLedger& ledger_;
  const CapacityLedger::Claimant claimant_;
  Mutex mutex_;
  std::map<AttemptKey, std::vector<PageRef>> taken_ ABSL_GUARDED_BY(mutex_);
};

// Claimants of both kinds on threads of their own: nothing goes over the limits, every wait ends, nothing leaks.
TEST(CapacityLedgerStressTest, SlotsAndPagesStayWithinTheirLimits) {
  constexpr int kThreads = 6;
  constexpr int kClaims = 300;
  constexpr int kSlots = 3;
  const std::unique_ptr<PagePool> pool = *PagePool::Create(kLayout, kPages);
  CapacityLedger ledger(pool.get(), {.max_sequences = kSlots, .growth_watermark_pages = 1});
  Side local(&ledger, kLocal);
  Side remote(&ledger, kRemote);
  ledger.SetHooks({.on_local = [] {}, .on_reservation = [&] { remote.Take(); }});
  pool->set_on_free([&] { ledger.OnPagesFree(); });

  std::atomic<int> in_use = 0;
  std::atomic<int> too_many = 0;
  std::atomic<int> not_queued = 0;
  const auto claim_all = [&](int thread) {
    const CapacityLedger::Claimant claimant = thread % 2 == 0 ? kLocal : kRemote;
    Side& side = thread % 2 == 0 ? local : remote;
    std::mt19937 dice(thread + 1);
    for (int i = 0; i < kClaims; ++i) {
      const AttemptKey key = RequestKey(1 + static_cast<uint64_t>(thread) * kClaims + i);
      const Age age{absl::FromUnixSeconds(i), key};
      const int count = 1 + static_cast<int>(dice() % 5);
      if (!ledger.Enqueue({.claimant = claimant, .age = age, .pages = count, .names = {}}).ok()) ++not_queued;
      if (dice() % 8 == 0) ledger.Hold(claimant, key, true);
      std::vector<PageRef> pages;
      if (dice() % 4 == 0) {
        pages = side.GiveUp(key);
      } else {
        while ((pages = side.TakeFor(key)).empty()) {
          ledger.Hold(claimant, key, false);
          std::this_thread::yield();
        }
        if (++in_use > kSlots) ++too_many;
        if (dice() % 2 == 0) {
          if (absl::StatusOr<std::vector<PageRef>> grown = ledger.Grow(1); grown.ok()) {
            pages.push_back(std::move(grown->front()));
          }
        }
        --in_use;
      }
      pool->Release(std::move(pages));
      ledger.Leave(claimant, key);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(claim_all, t);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(not_queued, 0);
  EXPECT_EQ(too_many, 0);
  EXPECT_TRUE(local.empty());
  EXPECT_TRUE(remote.empty());
  EXPECT_EQ(ledger.counts().slots_used, 0);
  EXPECT_EQ(ledger.counts().waiting_local, 0);
  EXPECT_EQ(ledger.counts().waiting_reservations, 0);
  EXPECT_EQ(pool->counts().available(), kPages);
  pool->set_on_free(nullptr);
}

}  // namespace
}  // namespace baton
