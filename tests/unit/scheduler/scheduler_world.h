// SPDX-License-Identifier: Apache-2.0
// A Scheduler without threads: a fake model and clock, fake handoff endpoints, a real pool and ledger. A test submits
// attempts, ticks, and plays the other worker.
#pragma once

#include <prometheus/registry.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/steady_time.h"
#include "engine/kv/page_pool.h"
#include "engine/model/model.h"
#include "worker/admission/capacity_ledger.h"
#include "worker/scheduler/scheduler.h"

namespace baton::testing {

inline constexpr int kVocab = 50;
inline constexpr int kLayers = 2;
inline constexpr int kPageTokens = 4;

// Says after each token the next higher one.
class FakeModel final : public Model {
 public:
  FakeModel();
  const ModelConfig& config() const override { return config_; }
  const KvLayout& kv_layout() const override { return layout_; }
  const std::string& numerics_id() const override { return numerics_id_; }
  std::string_view kernel_family() const override { return "fake"; }
  size_t weight_bytes() const override { return 1; }
  TensorType weight_type() const override { return TensorType::kF32; }
  size_t step_bytes() const override { return 1; }
  MachineLimits MeasureLimits() override { return {}; }
  absl::Status Forward(std::span<const SequenceInput> batch, PagePool& pool, const LayerDone& layer_done,
                       ForwardOutput& output) override;

  // One entry per step: how many tokens of each sequence were computed, in the order of the batch.
  std::vector<std::vector<int>> steps;
  // Runs before each layer's report.
  std::function<void(int layer)> during_layer = nullptr;
  absl::Status next_status = absl::OkStatus();

 private:
  ModelConfig config_;
  KvLayout layout_{kLayers, {.kv_heads = 1, .head_dim = 8, .page_tokens = kPageTokens}};
  const std::string numerics_id_ = "fake";
};

class FakeSender final : public HandoffSender {
 public:
  void Reserve(const AttemptKey& key, const HandoffTarget& target, int tokens, std::vector<PageHash> hashes,
               Events events) override;
  void PutLayer(const AttemptKey& key, int layer, int first_page, std::span<const PageId> pages) override;
  void Flush(const AttemptKey& key) override;
  void Commit(const AttemptKey& key, std::vector<TokenId> output) override;
  void Abort(const AttemptKey& key, bool finished, std::function<void()> released) override;

  Events& of(const AttemptKey& key) { return handoffs.at(key); }

  std::map<AttemptKey, Events> handoffs;
  std::vector<std::string> calls;  // "reserve 5", "put layer 0 pages 0..2", "commit 7", "abort", "abort finished"
  std::vector<std::function<void()>> released;  // of Abort, not yet called
};

class FakeReceiver final : public HandoffReceiver {
 public:
  absl::Status OpenAttempt(const AttemptKey& key, absl::Time due) override;
  void CloseAttempt(const AttemptKey& key) override { closed.push_back(key); }
  void Poke() override {}
  void StartDraining() override {}
  void StopDraining() override {}
  Load load() const override { return {}; }

  std::vector<AttemptKey> closed;
};

// Has the pages that a test names, and loads when the test says so.
class FakeTiers final : public TierLoader {
 public:
  std::vector<TierKind> Find(std::span<const PageHash> names) const override;
  void Load(std::shared_ptr<TierLoad> load, std::function<void()> done) override;
  void DropGivenUp() override;  // the oldest load runs
  TierSpeed speed() const override { return times; }

  // The oldest load is over: `pages` of its pages came, all without a number.
  void Finish(std::optional<int> pages = std::nullopt);

  std::set<PageHash> names;
  TierSpeed times;
  std::deque<std::pair<std::shared_ptr<TierLoad>, std::function<void()>>> loads;
};

// The reports to the caller of one attempt, as texts: "accepted", "started", "token 7", "finished", "failed preempted".
struct Told final : public AttemptEvents {
  void OnAccepted() override { words.emplace_back("accepted"); }
  void OnPromptStarted(absl::Duration) override { words.emplace_back("prompt started"); }
  void OnDecodeStarted(const PromptFigures& prompt, uint32_t next_output_index) override;
  void OnToken(uint32_t output_index, const SampledToken& token, const SamplingParams&) override;
  void OnDraining() override { words.emplace_back("draining"); }
  void OnHandedOver(const PromptFigures& prompt, const HandoffStats&) override;
  void OnFinished(Sequence::End end, TokenId, const PromptFigures&) override;
  void OnMigrated(uint32_t to_attempt) override { words.push_back("migrated to " + std::to_string(to_attempt)); }
  void OnFailed(const Outcome& outcome) override;
  bool cancelled() const override { return is_cancelled; }

  std::string last() const { return words.empty() ? "" : words.back(); }
  int tokens() const;

  std::vector<std::string> words;
  PromptFigures figures;
  std::string why;  // of a failure
  bool is_cancelled = false;
};

struct WorldOptions {
  uint32_t pages = 32;
  ScheduleLimits schedule{.token_budget = 16, .chunk_tokens = 8, .max_sequences = 4};
  int max_bypass = 2;
  int growth_watermark_pages = 0;
  bool tiers = false;
};

class World {
 public:
  explicit World(const WorldOptions& options = {});
  ~World();

  // Attempt 1 of request `request`; the prompt is `tokens` times `first`, first + 1, ... Requests are as old as their
  // number says: 1 is the oldest.
  Attempt MakeAttempt(uint64_t request, int tokens, uint32_t max_tokens = 100, TokenId first = 1);
  static AttemptKey Key(uint64_t request, uint32_t attempt = 1) { return {{0, request}, attempt}; }

  std::shared_ptr<Told> HandOver(const Attempt& attempt);
  std::shared_ptr<Told> Receive(const Attempt& attempt);
  std::shared_ptr<Told> RunLocally(const Attempt& attempt);
  std::shared_ptr<Told> Migrate(const MigrationOrder& order);
  // The other worker hands over the KV of `tokens` tokens and `output`.
  void DeliverReceived(const AttemptKey& key, int tokens, std::vector<TokenId> output);

  // Runs what was posted, then one tick. True if more is to do.
  bool Tick();
  // Ticks until nothing is to do; at most `limit` ticks.
  void Settle(int limit = 1000);
  // Names the first `pages` pages of a prompt of MakeAttempt.
  void PutInTiers(const Attempt& attempt, int pages);
  // The transport has answered every Abort.
  void ReleaseAborted();
  bool HoldsNothing() const;

  prometheus::Registry registry;
  WorkerMetrics metrics;
  WorkerLoadBoard load;
  FakeModel model;
  std::unique_ptr<PagePool> pool;
  CapacityLedger ledger;
  FakeSender sender;
  FakeReceiver receiver;
  FakeTiers tiers;
  SteadyTime clock;
  std::deque<std::function<void()>> posted;
  std::unique_ptr<Scheduler> scheduler;
};

}  // namespace baton::testing
