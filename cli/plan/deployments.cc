// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/deployments.h"

#include <algorithm>
#include <atomic>
#include <span>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "common/status_macros.h"

namespace baton::plan {
namespace {

SimulationOptions OptionsOf(const PlanQuery& query, const PlanRow& row) {
  SimulationOptions options = query.options;
  options.network_bytes_per_second = row.network_bytes_per_second;
  options.workers.insert(options.workers.end(), row.deployment.prefill, {WorkerRole::kPrefill, query.prefill});
  options.workers.insert(options.workers.end(), row.deployment.decode, {WorkerRole::kDecode, query.decode});
  options.workers.insert(options.workers.end(), row.deployment.both, {WorkerRole::kBoth, query.decode});
  return options;
}

void FillIn(const PlanQuery& query, PlanRow& row) {
  const SimulationOptions options = OptionsOf(query, row);
  if (query.rate) {
    row.at_rate = SimulateAt(options, query.load, *query.rate);
    if (row.at_rate->met < query.share || !query.stop_at_cheapest) return;
  }
  row.goodput = Goodput(options, query.load, query.share);
}

// Fills in rows on several threads.
absl::Status FillInAll(const PlanQuery& query, std::span<PlanRow> rows, const std::function<bool()>& interrupted) {
  std::atomic<size_t> next = 0;
  std::atomic<bool> stopped = false;
  const auto work = [&] {
    for (size_t i = next++; i < rows.size() && !stopped; i = next++) {
      if (interrupted()) stopped = true;
      if (!stopped) FillIn(query, rows[i]);
    }
  };
  std::vector<std::thread> helpers;
  for (int i = 1; i < std::min(query.threads, static_cast<int>(rows.size())); ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  return stopped ? absl::CancelledError("interrupted") : absl::OkStatus();
}

// Fills in the rows of one network. Returns how many are filled in.
absl::StatusOr<size_t> Compare(const PlanQuery& query, std::span<PlanRow> rows,
                               const std::function<bool()>& interrupted) {
  std::ranges::stable_sort(rows, {}, &PlanRow::cost);
  size_t done = 0;
  bool found = false;
  while (done < rows.size() && !(found && query.stop_at_cheapest)) {
    const auto same_cost = std::ranges::upper_bound(rows.subspan(done), rows[done].cost, {}, &PlanRow::cost);
    const auto group = std::span(rows.begin() + static_cast<ptrdiff_t>(done), same_cost);
    BATON_RETURN_IF_ERROR(FillInAll(query, group, interrupted));
    done += group.size();
    if (found || !query.rate) continue;
    // Of equal costs, the one with the most room.
    const auto best = std::ranges::max_element(
        group, {}, [](const PlanRow& row) { return std::pair(row.goodput.value_or(0), row.at_rate->met); });
    best->is_cheapest = found = best->at_rate->met >= query.share;
  }
  return done;
}

}  // namespace

std::vector<Deployment> DeploymentsOf(int most_workers) {
  std::vector<Deployment> deployments;
  for (int all = 1; all <= most_workers; ++all) {
    deployments.push_back({.both = all});
    for (int prefill = 1; prefill < all; ++prefill) {
      deployments.push_back({.prefill = prefill, .decode = all - prefill});
      deployments.push_back({.prefill = prefill, .both = all - prefill});
    }
  }
  return deployments;
}

absl::StatusOr<std::vector<PlanRow>> MakePlan(const PlanQuery& query, const std::function<bool()>& interrupted) {
  std::vector<PlanRow> plan;
  for (const double network : query.networks) {
    std::vector<PlanRow> rows;
    for (const Deployment& deployment : query.deployments) {
      const double cost =
          deployment.prefill * query.prefill_cost + (deployment.decode + deployment.both) * query.decode_cost;
      rows.push_back({.network_bytes_per_second = network, .deployment = deployment, .cost = cost});
    }
    BATON_ASSIGN_OR_RETURN(const size_t done, Compare(query, rows, interrupted));
    plan.insert(plan.end(), rows.begin(), rows.begin() + static_cast<ptrdiff_t>(done));
  }
  return plan;
}

}  // namespace baton::plan
