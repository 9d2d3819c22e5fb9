// SPDX-License-Identifier: Apache-2.0
// Route kHandOver of the Scheduler: a prompt that is computed here and decoded at another worker.
#include <span>
#include <utility>

#include "common/log.h"
#include "worker/scheduler/scheduler.h"

namespace baton {

void Scheduler::Reserve(Job& job) {
  const AttemptKey key = job.sequence.key();
  const std::span<const PageHash> names = job.sequence.page_names();
  ++job.readers;
  parts_.sender->Reserve(
      key, job.target, static_cast<int>(job.sequence.tokens().size()), {names.begin(), names.end()},
      {.on_queued = [this, key] { Post([this, key] { OnNoRoomYet(key); }); },
       .on_granted = [this, key] { Post([this, key] { OnGranted(key); }); },
       .on_flushed = [] {},  // Commit's flush is the only one
       .on_failed = [this, key](const Outcome& why) { Post([this, key, why] { OnHandoverFailed(key, why); }); },
       .on_done = [this, key](const HandoffStats& stats) { Post([this, key, stats] { OnHandedOver(key, stats); }); }});
}

// A prompt that waits for another worker holds nothing here.
void Scheduler::OnNoRoomYet(const AttemptKey& key) {
  Job* job = jobs_.Find(key);
  if (job == nullptr || !job->Advance(PhaseEvent::kNoRoomYet)) return;
  job->sequence.DropPages();
  LeaveCapacity(*job);
}

void Scheduler::OnGranted(const AttemptKey& key) {
  Job* job = jobs_.Find(key);
  if (job == nullptr || !job->Advance(PhaseEvent::kGranted)) return;
  if (job->phase == Phase::kReclaiming) Claim(*job, /*urgent=*/true);
}

void Scheduler::OnHandoverFailed(const AttemptKey& key, const Outcome& why) {
  Job* job = jobs_.Find(key);
  if (job == nullptr || job->phase == Phase::kReleasing) return;  // Abort has its own answer
  if (FailsKvTransfer(why.cause)) parts_.metrics->HandoffFailed(job->sequence.attempt());
  --job->readers;
  Fail(*job, why, Handoff::kOver);
}

void Scheduler::OnHandedOver(const AttemptKey& key, const HandoffStats& stats) {
  Job* job = jobs_.Find(key);
  if (job == nullptr || job->phase == Phase::kReleasing) return;
  parts_.metrics->HandedOver(job->sequence.attempt(), stats);
  job->events->OnHandedOver(FiguresOf(*job), stats);
  Log(LogLevel::kDebug, "attempt.handed_over",
      {{"request", key.request.ToString()},
       {"attempt", key.attempt},
       {"bytes", stats.bytes},
       {"transport", stats.transport},
       {"prefill", job->prefill},
       {"cached", job->sequence.cached_tokens()},
       {"exposed", stats.exposed}});
  --job->readers;
  End(*job, Cause::kHandedOver, Handoff::kOver);
}

}  // namespace baton
