// SPDX-License-Identifier: Apache-2.0
// Measures what a request costs under the registry's lock: the model is found, and a pair is placed. The arguments are
// the numbers of prefill and decode workers. Every pair of theirs that the router proves is ready.
//
//   placement_bench
#include <benchmark/benchmark.h>

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

WorkerTable ReadyTable(size_t prefills, size_t decodes, SteadyTime now) {
  WorkerTable table = LargeTable(prefills + decodes);
  HearAll(table, prefills, decodes, now);
  table.Advance(now);
  table.OnAssets(now, "f1", AssetsNamed("f1"));
  for (std::vector<Placement> probes = table.Advance(now).probe; !probes.empty(); probes = table.Advance(now).probe) {
    for (const Placement& probe : probes) table.OnProbed(now, probe.pair, absl::OkStatus());
  }
  return table;
}

PlacementQuery SomeQuery() { return {"m", "f1", "", 10, 20, {}, std::vector<PageKey>(64, 7), 16, false}; }

// Each placement also searches for a faster pair, as one does every 100 ms.
void FindAndPlace(benchmark::State& state) {
  SteadyTime now;
  WorkerTable table = ReadyTable(state.range(0), state.range(1), now);
  const PlacementQuery query = SomeQuery();
  for (auto _ : state) {
    benchmark::DoNotOptimize(table.FindModel("m").ok());
    benchmark::DoNotOptimize(table.Place(now, query).kind);
    state.PauseTiming();
    now += absl::Seconds(1);
    HearAll(table, state.range(0), state.range(1), now);  // then nothing counts as sent
    state.ResumeTiming();
  }
  state.counters["pairs"] = static_cast<double>(table.ready_pairs());
}
BENCHMARK(FindAndPlace)
    ->Args({1, 1})
    ->Args({8, 8})
    ->Args({100, 100})
    ->Args({500, 500})
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(500);

// The placements between two searches for a faster pair.
void Place(benchmark::State& state) {
  SteadyTime now;
  WorkerTable table = ReadyTable(state.range(0), state.range(1), now);
  const PlacementQuery query = SomeQuery();
  now += absl::Seconds(1);
  HearAll(table, state.range(0), state.range(1), now);
  table.Place(now, query);  // searches
  for (auto _ : state) benchmark::DoNotOptimize(table.Place(now, query).kind);
  state.counters["pairs"] = static_cast<double>(table.ready_pairs());
}
BENCHMARK(Place)
    ->Args({1, 1})
    ->Args({8, 8})
    ->Args({100, 100})
    ->Args({500, 500})
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(500);

}  // namespace
}  // namespace baton::router

BENCHMARK_MAIN();
