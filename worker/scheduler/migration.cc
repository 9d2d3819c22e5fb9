// SPDX-License-Identifier: Apache-2.0
// Live migration: the Scheduler hands a running sequence over to another decode worker.
#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "worker/scheduler/scheduler.h"

namespace baton {

// Only full pages are handed over.
bool Scheduler::FillsAPage(const Job& job) const {
  return job.sequence.kv_tokens() >= parts_.pool->layout().page_tokens();
}

void Scheduler::AnnounceDraining() {
  if (parts_.sender == nullptr) return;
  for (auto& [age, job] : jobs_) {
    if (job->phase != Phase::kDecoding || !FillsAPage(*job)) continue;
    if (!std::exchange(job->told_draining, true)) job->events->OnDraining();
  }
}

absl::Status Scheduler::CheckMigratable(const Job* job, const MigrationOrder& order) const {
  std::string why_not;
  if (job == nullptr || job->phase != Phase::kDecoding) {
    why_not = "the attempt does not run here";
  } else if (job->departure.has_value()) {
    why_not = "the attempt already migrates";
  } else if (order.prior_output_tokens > job->sequence.output_tokens()) {
    why_not = absl::StrCat("prior_output_tokens is ", order.prior_output_tokens, ", expected at most ",
                           job->sequence.output_tokens());
  } else if (!FillsAPage(*job)) {
    why_not = "the sequence does not fill a page yet";
  } else {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat("attempt ", order.from.ToString(), " stays: ", why_not));
}

void Scheduler::Migrate(const MigrationOrder& order, std::shared_ptr<AttemptEvents> events) {
  Job* job = jobs_.Find(order.from);
  if (const absl::Status migratable = CheckMigratable(job, order); !migratable.ok()) {
    return events->OnFailed(Outcome(Cause::kRevoked, std::string(migratable.message())));
  }
  // Nothing is written to full pages any more, so that the sequence can continue.
  const int pages = parts_.pool->layout().full_pages(job->sequence.kv_tokens());
  const int tokens = parts_.pool->layout().tokens_in(pages);
  const std::span<const PageHash> names = job->sequence.page_names();
  const auto named = names.first(std::min(names.size(), static_cast<size_t>(pages)));
  job->departure = Job::Departure{order, std::move(events), pages};
  ++job->readers;
  Log(LogLevel::kDebug, "attempt.migrating",
      {{"request", order.from.request.ToString()},
       {"attempt", order.from.attempt},
       {"to_attempt", order.to.attempt},
       {"to", order.target.worker_id},
       {"tokens", tokens}});
  parts_.sender->Reserve(
      order.to, order.target, tokens, {named.begin(), named.end()},
      {.on_queued = [] {},
       .on_granted = [this, order] { Post([this, order] { OnDepartureGranted(order); }); },
       .on_flushed = [this, order] { Post([this, order] { OnDepartureFlushed(order); }); },
       .on_failed = [this, order](const Outcome& why) { Post([this, order, why] { OnDepartureFailed(order, why); }); },
       .on_done = [this,
                   order](const HandoffStats& stats) { Post([this, order, stats] { OnDeparted(order, stats); }); }});
}

void Scheduler::CancelMigration(const MigrationOrder& order) {
  Job* job = FindDeparting(order);
  if (job != nullptr) AbortDeparture(*job, Outcome(Cause::kCancelled, "the router cancelled the migration"));
}

Job* Scheduler::FindDeparting(const MigrationOrder& order) {
  Job* job = jobs_.Find(order.from);
  return job != nullptr && job->departure.has_value() && job->departure->order.to == order.to ? job : nullptr;
}

void Scheduler::OnDepartureGranted(const MigrationOrder& order) {
  Job* job = FindDeparting(order);
  if (job == nullptr) return;
  // Tokens outside of the handed-over pages are computed again while the sequence rests: at most one step of them.
  const int outside =
      static_cast<int>(job->sequence.tokens().size()) - parts_.pool->layout().tokens_in(job->departure->pages);
  if (outside > limits_.token_budget) {
    return AbortDeparture(
        *job, Outcome(Cause::kRevoked, absl::StrCat(outside, " tokens have come while the migration waited for room")));
  }
  const auto pages = std::span(job->sequence.page_ids()).first(job->departure->pages);
  for (int layer = 0; layer < parts_.pool->layout().layers(); ++layer) {
    parts_.sender->PutLayer(order.to, layer, /*first_page=*/0, pages);
  }
  parts_.sender->Flush(order.to);
}

void Scheduler::OnDepartureFlushed(const MigrationOrder& order) {
  Job* job = FindDeparting(order);
  if (job == nullptr || !job->Advance(PhaseEvent::kCameToRest)) return;
  const std::span<const TokenId> tokens = job->sequence.tokens();
  const std::span<const TokenId> since =
      tokens.subspan(job->sequence.attempt().prompt.size() + order.prior_output_tokens);
  parts_.sender->Commit(order.to, {since.begin(), since.end()});
}

void Scheduler::OnDepartureFailed(const MigrationOrder& order, const Outcome& why) {
  Job* job = FindDeparting(order);
  if (job == nullptr) return;  // aborted meanwhile: Abort has its own answer
  if (FailsKvTransfer(why.cause)) parts_.metrics->HandoffFailed(job->sequence.attempt());
  EndDeparture(*job, why);
  OnNoLongerRead(order.from);
}

void Scheduler::OnDeparted(const MigrationOrder& order, const HandoffStats& stats) {
  Job* job = FindDeparting(order);
  if (job == nullptr) return;
  parts_.metrics->HandedOver(job->sequence.attempt(), stats);
  Log(LogLevel::kDebug, "attempt.migrated",
      {{"request", order.from.request.ToString()},
       {"attempt", order.from.attempt},
       {"to_attempt", order.to.attempt},
       {"bytes", stats.bytes},
       {"transport", stats.transport},
       {"transfer", stats.transfer},
       {"at_rest", stats.exposed}});
  job->departure->events->OnHandedOver({}, stats);
  job->events->OnMigrated(order.to.attempt);
  job->departure.reset();
  --job->readers;
  End(*job, Cause::kMigrated);
}

// Ends the handoff, if there is one, from our side: the sequence continues here, or has ended.
void Scheduler::AbortDeparture(Job& job, const Outcome& why) {
  if (!job.departure.has_value()) return;
  const AttemptKey from = job.departure->order.from;
  const AttemptKey to = job.departure->order.to;
  EndDeparture(job, why);
  parts_.sender->Abort(to, /*finished=*/false, [this, from] { Post([this, from] { OnNoLongerRead(from); }); });
}

void Scheduler::EndDeparture(Job& job, const Outcome& why) {
  const MigrationOrder& order = job.departure->order;
  Log(LogLevel::kWarning, "attempt.not_migrated",
      {{"request", order.from.request.ToString()},
       {"attempt", order.from.attempt},
       {"to_attempt", order.to.attempt},
       {"outcome", Name(why.cause)},
       {"detail", why.detail}});
  job.departure->events->OnFailed(why);
  job.departure.reset();
  job.Advance(PhaseEvent::kResumed);
}

}  // namespace baton
