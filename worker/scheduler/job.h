// SPDX-License-Identifier: Apache-2.0
// A Job is an attempt in the scheduler: its sequence, route, phase and caller.
//
// Used on the engine thread only.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "common/steady_time.h"
#include "engine/kv/tiers/tier_load.h"
#include "worker/route.h"
#include "worker/scheduler/attempt_events.h"
#include "worker/scheduler/phase.h"
#include "worker/scheduler/tenant_shares.h"
#include "worker/sequence.h"

namespace baton {

// Orders that a running sequence continue at another decode worker, as another attempt of the request.
struct MigrationOrder {
  AttemptKey from;  // runs here
  AttemptKey to;
  uint32_t prior_output_tokens = 0;  // of `to`
  HandoffTarget target;
};

struct Job {
  // A handoff of a running sequence. The full pages leave while the sequence continues.
  struct Departure {
    MigrationOrder order;
    std::shared_ptr<AttemptEvents> events;
    int pages = 0;  // the first pages, all full
  };

  // Pages of the prompt come from a tier.
  struct Loading {
    std::shared_ptr<TierLoad> load;  // owns the pages behind the cached pages
    SharedPages pages;               // all others; the places of the load's pages are empty
    SteadyTime since;
    SteadyTime late_at;  // computing would have taken as long
  };

  Job(Attempt attempt, PagePool& pool, Route way, std::shared_ptr<AttemptEvents> reports, SteadyTime now)
      : sequence(std::move(attempt), pool),
        route(way),
        events(std::move(reports)),
        phase(way == Route::kReceive ? Phase::kAwaiting : Phase::kWaiting),
        queued_since(now),
        first_token_by(now + sequence.attempt().first_token_within) {}

  // Returns whether the phase changed.
  bool Advance(PhaseEvent event) {
    const std::optional<Phase> next = Next(phase, event);
    if (next) phase = *next;
    return next.has_value();
  }

  // Returns whether this worker computes the prompt and has not finished.
  bool has_prompt_to_compute() const {
    return route != Route::kReceive && phase >= Phase::kWaiting && phase <= Phase::kComputing;
  }
  // Returns whether this job will soon publish pages of the prompt, for which other prompts can wait.
  bool computes_soon() const { return has_prompt_to_compute() && phase != Phase::kWaiting && phase != Phase::kQueued; }
  bool waits() const {
    return phase == Phase::kAwaiting || phase == Phase::kWaiting || phase == Phase::kClaiming ||
           phase == Phase::kQueued || phase == Phase::kReclaiming;
  }
  bool loads() const { return phase == Phase::kLoading || phase == Phase::kReloading; }
  // Returns whether the first step of the prompt is still to come.
  bool waits_to_compute() const { return has_prompt_to_compute() && !started; }
  // Returns whether a reservation of this job is open at a decode worker.
  bool hands_over() const {
    return route == Route::kHandOver && phase >= Phase::kReserving && phase <= Phase::kCommitting;
  }
  // Beyond kMaxChunks, the last chunk grows.
  static constexpr size_t kMaxChunks = 64;
  void NoteChunk(PromptChunk chunk) {
    if (chunks.size() < kMaxChunks) return chunks.push_back(chunk);
    chunks.back().tokens += chunk.tokens;
    chunks.back().duration = chunk.start + chunk.duration - chunks.back().start;
  }
  // Only for a job that decodes.
  SteadyTime decoding_since() const { return route == Route::kReceive ? queued_since : *started + prefill; }
  bool in_batch() const { return phase == Phase::kComputing || phase == Phase::kDecoding; }

  Sequence sequence;
  const Route route;
  const std::shared_ptr<AttemptEvents> events;
  Phase phase;
  HandoffTarget target;     // of kHandOver
  SteadyTime queued_since;  // since it came, or since its pages came from another worker
  const SteadyTime first_token_by;
  std::optional<SteadyTime> started;  // first step
  absl::Duration prefill;             // first step to first token
  std::vector<PromptChunk> chunks;    // of the prompt; see NoteChunk
  int expected_cached = 0;            // tokens whose pages were published when the attempt came
  int pages_put = 0;                  // full pages that have left, all layers of them
  int readers = 0;                    // handoffs that may still read the pages
  bool told_draining = false;
  bool cancelled_at_rest = false;
  std::optional<Departure> departure;
  std::optional<Loading> loading;
  TenantShares::Share* tenant = nullptr;  // while a prompt is left to compute
};

}  // namespace baton
