// SPDX-License-Identifier: Apache-2.0
// A CapacityLedger with a pool of ten pages.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "engine/kv/page_pool.h"
#include "tests/status_matchers.h"
#include "worker/admission/capacity_ledger.h"

namespace baton {

inline const KvLayout kLayout(1, {.kv_heads = 1, .head_dim = 4, .page_tokens = 4, .dtype = KvType::kF32});
inline constexpr uint32_t kPages = 10;
inline constexpr auto kLocal = CapacityLedger::Claimant::kLocalPrompt;
inline constexpr auto kRemote = CapacityLedger::Claimant::kReservation;

inline AttemptKey RequestKey(uint64_t request) { return {.request = {0, request}, .attempt = 1}; }

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

}  // namespace baton
