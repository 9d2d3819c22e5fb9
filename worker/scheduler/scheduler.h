// SPDX-License-Identifier: Apache-2.0
// The Scheduler decides what a worker computes next: continuous batching over the sequences of one model, in every
// role.
//
// Each attempt takes one of three routes (job.h): hand over, receive, local. The routes share the phases (phases.def),
// the steps, growth and preemption; a role is the set of routes that the worker's services submit.
//
// A tick grows running sequences, claims capacity for prompts, admits the prompts that the CapacityLedger granted, and
// runs one step. A step is one token for each sequence that decodes, and chunks of prompts in the rest of the token
// budget. When pages run out, the youngest running sequence is preempted; the oldest is never preempted for another.
//
// A prompt whose pages a tier has (engine/kv/tiers) loads the pages once it is admitted, if the load takes less time
// than computing them. Other sequences go on meanwhile.
//
// While the worker drains, the caller of a running sequence is told to migrate the sequence (migration.cc). A migrated
// sequence decodes here while its full pages leave, and rests when they have landed. The tokens sampled meanwhile
// follow with Commit.
//
// Every attempt ends with one final report to its AttemptEvents, or with Cancel, and gives back all that it holds.
//
// Lives on one engine thread: construction aside, all methods run there. Callbacks of the handoff endpoints come back
// through Parts::post.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/outcome.h"
#include "common/steady_time.h"
#include "common/step_cost.h"
#include "engine/kv/page_pool.h"
#include "engine/kv/tiers/tier_load.h"
#include "engine/model/model.h"
#include "kvtransfer/endpoints/endpoints.h"
#include "worker/admission/capacity_ledger.h"
#include "worker/load.h"
#include "worker/metrics.h"
#include "worker/schedule.h"
#include "worker/scheduler/job.h"
#include "worker/scheduler/job_table.h"
#include "worker/scheduler/tenant_shares.h"
#include "worker/step.h"

namespace baton {

class Scheduler {
 public:
  struct Parts {  // all outlive the scheduler
    Model* model = nullptr;
    PagePool* pool = nullptr;
    CapacityLedger* ledger = nullptr;
    HandoffSender* sender = nullptr;      // null: hands nothing over
    HandoffReceiver* receiver = nullptr;  // null: receives nothing
    TierLoader* tiers = nullptr;          // null: the pool has no tiers
    WorkerMetrics* metrics = nullptr;
    WorkerLoadBoard* load = nullptr;
    std::function<void(std::function<void()>)> post;  // runs a command on the engine thread; thread-safe
    std::function<SteadyTime()> now = SteadyTime::Now;
    std::function<absl::Time()> date = absl::Now;
  };
  Scheduler(const Parts& parts, const ScheduleLimits& limits);

  // Computes the prompt here and hands the sequence over to `target`.
  void HandOver(Attempt attempt, const HandoffTarget& target, std::shared_ptr<AttemptEvents> events);
  // Waits for the sequence from another worker. The attempt is open at the receiver.
  void Receive(Attempt attempt, std::shared_ptr<AttemptEvents> events);
  // Computes the prompt and decodes here.
  void RunLocally(Attempt attempt, std::shared_ptr<AttemptEvents> events);
  // Nobody needs the attempt any more. Ignores unknown keys.
  void Cancel(const AttemptKey& key);

  // Reports of the receiver.
  void OnReceived(ReceivedSequence received);
  void OnReceiveFailed(const AttemptKey& key, const Outcome& why);

  // Hands a running sequence over: see Migrate in worker.proto. OnHandedOver and OnFailed are the final reports.
  void Migrate(const MigrationOrder& order, std::shared_ptr<AttemptEvents> events);
  // The sequence stays here. Ignores unknown orders.
  void CancelMigration(const MigrationOrder& order);

  // The receiver refuses reservations from now on; callers are told to migrate running sequences.
  void StartDraining() { draining_ = true; }
  // The sequences that are still here stay. A later drain tells their callers again.
  void StopDraining();
  // Ends the attempts whose prompts have not begun with DRAINING and `why`: other workers may begin them sooner.
  void FailWaiting(const std::string& why);
  // Ends every attempt with DRAINING and `why`.
  void FailAll(const std::string& why);

  // Does one step's worth of work. Returns false if nothing is left to do until the next call of another method.
  bool Tick();
  // Returns when a tick is due although no other method was called; the infinite future if no time is due.
  SteadyTime next_wake() const;

 private:
  // The state of a job's own handoff when the job ends.
  enum class Handoff { kOpen, kOpenButFinished, kOver };

  void Submit(Route route, Attempt submitted, const HandoffTarget& target, std::shared_ptr<AttemptEvents> events);
  PromptFigures FiguresOf(const Job& job) const;

  // Fails the prompts that wait and whose first token can no longer come in time.
  void FailLate();
  absl::Duration TimeToCompute(const Job& job) const;
  static int TokensToCompute(const Job& job);

  // Capacity.
  void ClaimForPrompts();
  BatchState StateOfBatch() const;
  bool IsComputedByAnother(Job& job);
  void Claim(Job& job, bool urgent);
  // Returns whether a prompt was refused: a prompt that waited for its prefix can claim in the next tick.
  bool TakeDecisions();
  void Admit(Job& job, SharedPages pages);
  void Begin(Job& job, SharedPages pages, int loaded);
  void GrowAll();
  bool Grow(Sequence& sequence);
  // Makes room for `needy` by preemption. False: pages will come later, or `needy` itself has ended.
  bool PreemptFor(const AttemptKey& needy, std::vector<Age>& running);
  void LeaveCapacity(const Job& job);
  // Tokens whose pages are in the pool or in tiers.
  int CountCached(Job& job) const;
  void LeaveTenant(Job& job);

  // Steps.
  std::vector<Share> Plan();
  void RunStep(const std::vector<Share>& plan);
  void BeginComputing(Job& job, SteadyTime now);
  bool OnLayerDone(const std::vector<Job*>& jobs, const std::vector<int>& pages_complete, int layer);
  // Pages of a sequence that are complete once the entry's tokens are in: full pages, and the prompt's last page.
  int PagesComplete(const StepEntry& entry) const;
  void OnStepDone(const std::vector<Job*>& jobs, const std::vector<StepEntry>& entries,
                  const std::vector<int>& pages_complete, absl::Duration duration);
  void LearnCost(const std::vector<Job*>& jobs, const std::vector<StepEntry>& entries, absl::Duration duration);
  void OnStepFailed(const std::vector<StepEntry>& entries, const absl::Status& status);
  void OnSampled(Job& job, const SampledToken& sampled);
  void OnPromptComputed(Job& job);

  // tiers.cc
  int CountInTiers(Job& job, int published) const;
  int TokensAhead(const Job& job) const;
  bool StartLoad(Job& job, SharedPages* pages);
  SteadyTime WhenLate(const Job& job) const;
  void GiveUpLateLoads();
  void OnLoaded(const AttemptKey& key, const std::shared_ptr<TierLoad>& load);
  void EndLoad(Job& job, std::vector<PageRef> pages, int loaded);

  // handover.cc: what route kHandOver adds.
  void Reserve(Job& job);
  void OnNoRoomYet(const AttemptKey& key);
  void OnGranted(const AttemptKey& key);
  void OnHandoverFailed(const AttemptKey& key, const Outcome& why);
  void OnHandedOver(const AttemptKey& key, const HandoffStats& stats);

  // Endings.
  void Fail(Job& job, const Outcome& why, Handoff handoff = Handoff::kOpen);
  void End(Job& job, Cause cause, Handoff handoff = Handoff::kOpen);
  // One handoff fewer reads the job's pages.
  void OnNoLongerRead(const AttemptKey& key);
  void Erase(const AttemptKey& key);
  void PublishLoad();
  void PublishRecent();

  // migration.cc
  absl::Status CheckMigratable(const Job* job, const MigrationOrder& order) const;
  void AnnounceDraining();
  bool FillsAPage(const Job& job) const;
  Job* FindDeparting(const MigrationOrder& order);
  void OnDepartureGranted(const MigrationOrder& order);
  void OnDepartureFlushed(const MigrationOrder& order);
  void OnDepartureFailed(const MigrationOrder& order, const Outcome& why);
  void OnDeparted(const MigrationOrder& order, const HandoffStats& stats);
  void AbortDeparture(Job& job, const Outcome& why);
  void EndDeparture(Job& job, const Outcome& why);

  // receive.cc
  absl::Status CheckReceived(const Job& job, const ReceivedSequence& received) const;

  // Runs `report` on the engine thread. For callbacks of the endpoints.
  void Post(std::function<void()> report) { parts_.post(std::move(report)); }

  const Parts parts_;
  const ScheduleLimits limits_;
  StepRunner runner_;
  JobTable<Job> jobs_;
  MeanSpeed prefill_speed_;
  StepCostEstimate cost_estimate_;
  StepTimes times_;
  TenantShares tenants_;
  std::deque<std::pair<SteadyTime, uint64_t>> recent_;  // when an attempt came, and of which request
  bool recent_changed_ = false;
  SteadyTime next_fit_ = SteadyTime::InfinitePast();
  bool draining_ = false;
};

}  // namespace baton
