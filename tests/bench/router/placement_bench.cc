// SPDX-License-Identifier: Apache-2.0
// Measures what a request costs under the registry's lock: the model is found, and a pair is placed. The arguments are
// the numbers of prefill and decode workers. Every pair of theirs that the router proves is ready.
//
//   placement_bench
#include <benchmark/benchmark.h>

#include <random>

#include "worker_table_fixture.h"

namespace baton::router {
namespace {

void HearAll(WorkerTable& table, size_t prefills, size_t decodes, SteadyTime now) {
  for (size_t i = 0; i < prefills + decodes; ++i) {
    v1::WorkerStatus status =
        StatusOf(absl::StrCat("worker-", i), i < prefills ? v1::WORKER_ROLE_PREFILL : v1::WORKER_ROLE_DECODE);
    if (i >= prefills) status.set_handoff_address("there:1");
    table.OnStatus(now, i, status, [] { return nullptr; });
  }
}

void ProveAll(WorkerTable& table, SteadyTime now) {
  for (std::vector<Placement> probes = table.Advance(now).probe; !probes.empty(); probes = table.Advance(now).probe) {
    for (const Placement& probe : probes) table.OnProbed(now, probe.pair, absl::OkStatus());
  }
}

WorkerTable ReadyTable(size_t prefills, size_t decodes, SteadyTime now) {
  WorkerTable table = LargeTable(prefills + decodes);
  HearAll(table, prefills, decodes, now);
  table.Advance(now);
  table.OnAssets(now, "f1", AssetsNamed("f1"));
  ProveAll(table, now);
  return table;
}

PlacementQuery SomeQuery() { return {"m", "f1", "", 10, 20, {}, std::vector<PageKey>(64, 7), 16, false}; }

void FindAndPlaceOnce(WorkerTable& table, SteadyTime now, const PlacementQuery& query) {
  benchmark::DoNotOptimize(table.FindModel("m").ok());
  benchmark::DoNotOptimize(table.Place(now, query).kind);
}

// Each placement also searches for a faster pair, as one does every 100 ms.
void FindAndPlaceWithSearch(benchmark::State& state) {
  SteadyTime now;
  WorkerTable table = ReadyTable(state.range(0), state.range(1), now);
  const PlacementQuery query = SomeQuery();
  for (auto _ : state) {
    FindAndPlaceOnce(table, now, query);
    state.PauseTiming();
    now += absl::Seconds(1);
    HearAll(table, state.range(0), state.range(1), now);  // then nothing counts as sent
    state.ResumeTiming();
  }
  state.counters["pairs"] = static_cast<double>(table.ready_pairs());
}
BENCHMARK(FindAndPlaceWithSearch)
    ->Args({1, 1})
    ->Args({8, 8})
    ->Args({100, 100})
    ->Args({500, 500})
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(500);

// The placements between two searches for a faster pair.
void FindAndPlace(benchmark::State& state) {
  SteadyTime now;
  WorkerTable table = ReadyTable(state.range(0), state.range(1), now);
  const PlacementQuery query = SomeQuery();
  now += absl::Seconds(1);
  HearAll(table, state.range(0), state.range(1), now);
  table.Place(now, query);  // searches
  for (auto _ : state) FindAndPlaceOnce(table, now, query);
  state.counters["pairs"] = static_cast<double>(table.ready_pairs());
}
BENCHMARK(FindAndPlace)
    ->Args({1, 1})
    ->Args({8, 8})
    ->Args({100, 100})
    ->Args({500, 500})
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(500);

// Each worker reports a load of its own, and knows 20,000 pages. All know the first 16 pages of the prompt, a system
// prompt, and some know more of the prompt.
void HearLoads(WorkerTable& table, size_t prefills, size_t decodes, const PlacementQuery& query, SteadyTime now) {
  std::mt19937_64 random(1);
  for (size_t i = 0; i < prefills + decodes; ++i) {
    const bool prefill = i < prefills;
    v1::WorkerStatus status =
        StatusOf(absl::StrCat("worker-", i), prefill ? v1::WORKER_ROLE_PREFILL : v1::WORKER_ROLE_DECODE);
    if (!prefill) status.set_handoff_address("there:1");
    status.mutable_capacity()->set_max_sequences(128);
    status.mutable_capacity()->set_pages_total(40'000);
    status.mutable_capacity()->set_kv_token_bytes(100'000);
    status.mutable_model()->set_max_context_tokens(100'000);
    v1::WorkerLoad& load = *status.mutable_load();
    if (prefill) {
      load.set_prefill_tokens_per_second(9000 + static_cast<double>(random() % 2000));
      load.set_waiting_tokens(random() % 4000);
    } else {
      load.set_running_sequences(random() % 100);
      load.set_running_tokens(1000 * load.running_sequences());
      load.set_tpot_objectives(load.running_sequences());
      load.set_tpot_slo_seconds(0.05);
      load.set_step_seconds(0.02);
      load.mutable_step_cost()->set_step_seconds(0.01);
      load.mutable_step_cost()->set_decode_row_seconds(1e-4);
    }
    table.OnStatus(now, i, status, [] { return nullptr; });
  }
  for (const WorkerTable::WatchPages& watch : table.Advance(now).watch_pages) {
    v1::PageNews news;
    const size_t known = random() % 10 == 0 ? random() % query.pages.size() : 16;
    for (size_t i = 0; i < std::max<size_t>(known, 16); ++i) news.add_added(query.pages[i]);
    while (news.added_size() < 20'000) news.add_added(random());
    table.OnPages(watch, news);
  }
}

// Placements under load, between two searches for a faster pair. Each has an objective for the first token and one for
// the time per token.
void FindAndPlaceUnderLoad(benchmark::State& state) {
  SteadyTime now;
  WorkerTable table = LargeTable(state.range(0) + state.range(1));
  PlacementQuery query = SomeQuery();
  query.prompt_tokens = 2000;
  query.total_tokens = 3000;
  query.pages.clear();
  for (int i = 0; i < 125; ++i) query.pages.push_back(1000 + i);
  query.ttft_slo = absl::Seconds(1);
  query.tpot_slo = absl::Milliseconds(50);
  HearLoads(table, state.range(0), state.range(1), query, now);
  table.OnAssets(now, "f1", AssetsNamed("f1"));
  ProveAll(table, now);
  FindAndPlaceOnce(table, now, query);  // searches
  for (auto _ : state) FindAndPlaceOnce(table, now, query);
  state.counters["pairs"] = static_cast<double>(table.ready_pairs());
}
BENCHMARK(FindAndPlaceUnderLoad)
    ->Args({8, 8})
    ->Args({100, 100})
    ->Args({500, 500})
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(500);

}  // namespace
}  // namespace baton::router

BENCHMARK_MAIN();
