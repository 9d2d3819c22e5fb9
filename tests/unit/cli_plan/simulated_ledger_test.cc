// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/simulated_ledger.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "engine/kv/page_pool.h"
#include "tests/status_matchers.h"
#include "worker/admission/capacity_ledger.h"

namespace baton::plan {
namespace {

constexpr int kPages = 40;

Age AgeOf(RequestIndex request) { return {absl::FromUnixSeconds(request), {.request = {0, request}, .attempt = 1}}; }

// The real ledger and the simulated one, side by side.
class BothLedgers {
 public:
  using Claimant = SimulatedLedger::Claimant;

  BothLedgers()
      : pool_(*PagePool::Create(KvLayout(1, {.kv_heads = 1, .head_dim = 4, .page_tokens = 4, .dtype = KvType::kF32}),
                                kPages)),
        real_(pool_.get(), {.max_sequences = 6, .max_bypass = 3, .growth_watermark_pages = 4}),
        simulated_({.pages = kPages, .max_sequences = 6, .max_bypass = 3, .growth_watermark_pages = 4}) {
    pool_->set_on_free([this] { real_.OnPagesFree(); });
  }
  ~BothLedgers() { pool_->set_on_free(nullptr); }

  void Enqueue(Claimant claimant, RequestIndex request, int pages, bool urgent) {
    EXPECT_OK(real_.Enqueue({Real(claimant), AgeOf(request), pages, {}, urgent}));
    simulated_.Enqueue({claimant, AgeOf(request), request, pages, urgent});
  }
  // Expects the same grants of both, and returns them.
  std::vector<RequestIndex> TakeGrants(Claimant claimant) {
    std::vector<RequestIndex> granted;
    for (CapacityLedger::Decision& decision : real_.TakeDecisions(Real(claimant))) {
      granted.push_back(static_cast<RequestIndex>(decision.key.request.low));
      EXPECT_OK(decision.pages);
      if (decision.pages.ok()) held_[granted.back()] = std::move(decision.pages->pages);
    }
    std::vector<RequestIndex> simulated;
    for (const SimulatedLedger::Claim& claim : simulated_.TakeGrants(claimant)) simulated.push_back(claim.request);
    EXPECT_EQ(simulated, granted);
    return granted;
  }
  void End(Claimant claimant, RequestIndex request) {
    real_.Leave(Real(claimant), AgeOf(request).key);
    simulated_.Leave();
    const auto pages = static_cast<int>(held_[request].size());
    pool_->Release(std::exchange(held_[request], {}));
    simulated_.FreePages(pages);
  }
  void Grow(RequestIndex request) {
    absl::StatusOr<std::vector<PageRef>> grown = real_.Grow(1);
    EXPECT_EQ(simulated_.Grow(1), grown.ok());
    if (grown.ok()) held_[request].push_back(std::move(grown->front()));
  }
  void ExpectSame() const {
    EXPECT_EQ(simulated_.slots_used(), real_.counts().slots_used);
    EXPECT_EQ(simulated_.pages_used(), static_cast<int>(pool_->counts().used));
    EXPECT_EQ(simulated_.waiting(), real_.counts().waiting_local + real_.counts().waiting_reservations);
  }

 private:
  static CapacityLedger::Claimant Real(Claimant claimant) {
    return claimant == Claimant::kLocalPrompt ? CapacityLedger::Claimant::kLocalPrompt
                                              : CapacityLedger::Claimant::kReservation;
  }

  std::unique_ptr<PagePool> pool_;
  CapacityLedger real_;
  SimulatedLedger simulated_;
  std::map<RequestIndex, std::vector<PageRef>> held_;
};

TEST(SimulatedLedgerTest, GrantsAsTheCapacityLedgerDoes) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    BothLedgers ledgers;
    std::vector<std::pair<BothLedgers::Claimant, RequestIndex>> running;
    std::set<RequestIndex> used;
    for (int i = 0; i < 400; ++i) {
      const auto claimant = static_cast<BothLedgers::Claimant>(random() % 2);
      if (random() % 2 == 0) {
        const auto request = static_cast<RequestIndex>(random() % 2000);
        if (!used.insert(request).second) continue;
        ledgers.Enqueue(claimant, request, 1 + static_cast<int>(random() % 25), random() % 10 == 0);
      } else if (!running.empty() && random() % 3 == 0) {
        ledgers.Grow(running[random() % running.size()].second);
      } else if (!running.empty()) {
        std::swap(running[random() % running.size()], running.back());
        ledgers.End(running.back().first, running.back().second);
        running.pop_back();
      }
      for (const auto each : {BothLedgers::Claimant::kLocalPrompt, BothLedgers::Claimant::kReservation}) {
        for (const RequestIndex request : ledgers.TakeGrants(each)) running.emplace_back(each, request);
      }
      ledgers.ExpectSame();
    }
    EXPECT_FALSE(running.empty());
  }
}

}  // namespace
}  // namespace baton::plan
