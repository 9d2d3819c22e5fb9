// SPDX-License-Identifier: Apache-2.0
// A simulated router: what it knows of the workers is as old as their reports, as with router/worker_table.h.
// ChoosePair decides on each request, over the pairs that PairSet holds from the start. All pairs count as proven, and
// all paths as measured. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cli/plan/simulated_worker.h"
#include "router/placement.h"

namespace baton::plan {

enum class WorkerRole : uint8_t { kPrefill, kDecode, kBoth };

struct WorkerSpec {
  WorkerRole role = WorkerRole::kPrefill;
  WorkerKind kind;
};

struct PairChoice {
  size_t prefill = 0;  // the same worker as `decode`: the prompt is computed where it is decoded
  size_t decode = 0;
};

// The answer to a request for a place: a pair, or why there is none.
struct PlaceAnswer {
  enum class Kind : uint8_t {
    kPlaced,
    kNever,   // no pair could ever serve the request
    kLate,    // refused
    kNoRoom,  // ask again
  };
  Kind kind = Kind::kNever;
  PairChoice pair = {};
  bool is_batch = false;  // as served
};

class SimulatedRouter {
 public:
  struct Options {
    router::PlacementRules rules = {};
    double path_bytes_per_second = 0;
  };

  SimulatedRouter(std::span<const WorkerSpec> workers, const Options& options);

  // `as_of`: the time of the report's figures.
  void OnReport(double as_of, size_t worker, const WorkerReport& report);
  // A request that `has_begun` to answer is never late.
  PlaceAnswer Place(double now, router::PlacementNeed need, bool has_begun = false);

  size_t pairs() const { return candidates_.pairs.size(); }

 private:
  struct Sent {  // work that may not be in a report yet
    double at = 0;
    uint32_t tokens = 0;
    uint32_t pages = 0;
    uint32_t context = 0;
    bool is_batch = false;
    double tpot_slo = 0;
  };
  struct Worker {
    WorkerReport report;
    double as_of = 0;
    std::vector<Sent> sent;   // in order of time
    router::WorkerView view;  // but for what waits
  };

  static router::WorkerView ViewOf(double now, const Worker& worker);
  void UpdateView(size_t worker);
  void Send(size_t worker, const Sent& sent);

  const Options options_;
  std::vector<WorkerSpec> specs_;
  std::vector<Worker> workers_;
  router::Candidates candidates_;  // the workers as they were at the latest placement
  uint64_t turn_ = 0;
};

}  // namespace baton::plan
