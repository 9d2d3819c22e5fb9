// SPDX-License-Identifier: Apache-2.0
// A simulated worker: the Scheduler of worker/scheduler/ without tokens, memory and peers. PlanStep decides what each
// step computes, and a StepCost how long the step takes. Slots and pages are numbers. There is no prefix cache.
//
//   phase        the job                                              holds
//   awaiting     waits for the sequence of another worker             nothing, or its grant
//   claiming     waits for a slot and pages here                      nothing
//   reserving    waits for pages at the decode worker                 slot, pages
//   queued       waits for pages there; gave its own pages back       nothing
//   reclaiming   got its pages there, waits for its own again         nothing
//   computing    computes the prompt                                  slot, pages
//   committing   hands the sequence over                              slot, pages
//   decoding                                                          slot, pages
//
// Calls fill in WorkerEffects, which the owner carries out. The owner runs the clock: StartStep, then FinishStep when
// the step's time is over. Not thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "cli/plan/simulated_ledger.h"
#include "common/step_cost.h"
#include "worker/load.h"
#include "worker/schedule.h"

namespace baton::plan {

// The size and the speed of a worker.
struct WorkerKind {
  StepCost cost;  // of the steps
  ScheduleLimits schedule;
  int pages = 0;
  int page_tokens = 16;
  int kv_token_bytes = 0;
  int layers = 1;
  int max_context_tokens = 0;

  int PagesFor(int tokens) const { return (tokens + page_tokens - 1) / page_tokens; }
};

enum class Route : uint8_t { kHandOver, kReceive, kLocal };

// An attempt, as a worker gets it.
struct Attempt {
  RequestIndex request = 0;
  Age age;
  int context_tokens = 0;  // prompt and output so far
  int output_tokens = 0;   // left to generate
  absl::Duration tpot_slo = {};
  bool is_batch = false;
};

// A token that a step has sampled.
struct Sampled {
  RequestIndex request = 0;
  bool of_prompt = false;  // the first of its attempt
  bool last = false;       // the request is complete
};

// KV that a step has computed for a handoff.
struct ComputedKv {
  RequestIndex request = 0;
  int tokens = 0;
};

struct WorkerEffects {
  std::vector<RequestIndex> to_reserve;  // prompts that need pages at their decode workers
  std::vector<RequestIndex> granted;     // reservations that were granted here
  std::vector<RequestIndex> preempted;   // attempts that have ended
  std::vector<ComputedKv> computed;
  std::vector<Sampled> sampled;
};

// The figures of a status report.
struct WorkerReport {
  uint32_t waiting_requests = 0;
  uint32_t running_sequences = 0;
  uint64_t waiting_tokens = 0;
  uint64_t running_tokens = 0;
  uint64_t pages_used = 0;
  double prefill_tokens_per_second = 0;
  double step_seconds = 0;
  double sequence_seconds = 0;
  uint64_t waiting_batch_tokens = 0;
  uint32_t tpot_objectives = 0;
  double tpot_slo_seconds = 0;  // of all attempts alike
};

class SimulatedWorker {
 public:
  explicit SimulatedWorker(const WorkerKind& kind);

  // Begins an attempt. The effects of a grant come with StartStep.
  void Submit(const Attempt& attempt, Route route);
  // A prompt of another worker asks for pages. Returns whether they were granted at once; else `granted` names the
  // request later. The attempt was submitted with kReceive.
  bool Reserve(RequestIndex request, WorkerEffects& effects);
  // Answers to `to_reserve`.
  void OnNoRoom(RequestIndex request, WorkerEffects& effects);
  void OnGranted(RequestIndex request, WorkerEffects& effects);
  // The sequence has arrived, with its first token.
  void OnReceived(RequestIndex request);
  // Ends an attempt here: the sequence was handed over, or the other worker had no use for it.
  void Release(RequestIndex request, WorkerEffects& effects);

  // A sequence has decoded here for this long.
  void NoteSequence(double seconds) { UpdateMean(sequence_seconds_, seconds); }

  bool busy() const { return !step_.empty(); }
  // Plans the next step. Returns the step's seconds, or nullopt if there is nothing to compute. The worker is not busy.
  std::optional<double> StartStep(WorkerEffects& effects);
  void FinishStep(WorkerEffects& effects);

  // Returns what the worker reports now. Load is that after the latest step, as with real workers.
  WorkerReport Report() const;

  const WorkerKind& kind() const { return kind_; }
  const SimulatedLedger& ledger() const { return ledger_; }
  int jobs() const { return static_cast<int>(jobs_.size()); }
  uint64_t steps() const { return steps_; }

 private:
  enum class Phase : uint8_t {
    kAwaiting,
    kClaiming,
    kReserving,
    kQueued,
    kReclaiming,
    kComputing,
    kCommitting,
    kDecoding
  };
  struct Job {
    Attempt attempt;
    Route route = Route::kLocal;
    Phase phase = Phase::kAwaiting;
    int tokens = 0;     // of the context, sampled tokens included
    int kv_tokens = 0;  // whose KV is there
    int pages = 0;
    bool has_slot = false;

    int pending() const { return tokens - kv_tokens; }
    bool in_batch() const { return phase == Phase::kComputing || phase == Phase::kDecoding; }
    bool has_prompt() const { return route != Route::kReceive && phase <= Phase::kComputing; }
  };
  struct Running {
    Job* job;
    int tokens;
  };

  Job& Find(RequestIndex request) { return *jobs_.at(request); }
  // Adds or removes the job's part of the load.
  void Count(const Job& job, int sign);
  void Enter(Job& job, Phase phase);
  void Claim(Job& job, bool urgent);
  void TakeLocalGrants(WorkerEffects& effects);
  void TakeReservations(WorkerEffects& effects);
  void GrowAll(WorkerEffects& effects);
  // Preempts the youngest sequence. Returns false if the oldest is left alone.
  bool Preempt(WorkerEffects& effects);
  void OnSampled(Job& job, WorkerEffects& effects);
  void Erase(Job& job);
  void Publish();

  const WorkerKind kind_;
  SimulatedLedger ledger_;
  absl::flat_hash_map<RequestIndex, std::unique_ptr<Job>> jobs_;
  std::vector<Job*> batch_;  // computing or decoding, oldest first
  std::vector<Running> step_;
  StepWork step_work_;
  StepTimes times_;
  uint64_t steps_ = 0;

  WorkerReport load_;       // of all jobs
  WorkerReport published_;  // the load after the latest step
  MeanSpeed prefill_speed_;
  std::atomic<double> step_seconds_ = 0;
  std::atomic<double> sequence_seconds_ = 0;
};

}  // namespace baton::plan
