// Live migration: the part of the DecodeEngine that hands running sequences over to other decode workers.
#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "decode_worker/decode_engine.h"
#include "worker/wire.h"

namespace baton {

// Only full pages are handed over.
bool DecodeEngine::FillsAPage(const Job& job) const {
  return job.sequence.kv_tokens() >= parts_.pool->layout().page_tokens;
}

void DecodeEngine::AnnounceDraining() {
  if (parts_.sender == nullptr) return;
  for (auto& [age, job] : jobs_) {
    if (job->state != State::kRunning || !job->first_token_out || !FillsAPage(*job)) continue;
    if (std::exchange(job->told_draining, true)) continue;
    v1::DecodeEvent event;
    event.mutable_draining();
    job->sink->Write(std::move(event), /*last=*/false);
  }
}

void DecodeEngine::Migrate(const MigrationOrder& order, std::shared_ptr<MigrationSink> sink) {
  Job* job = jobs_.Find(order.from);
  std::string why_not;
  if (job == nullptr || job->state != State::kRunning || !job->first_token_out) {
    why_not = "it does not run here";
  } else if (job->departure.has_value()) {
    why_not = "it is being migrated already";
  } else if (order.prior_output_tokens > job->sequence.output_tokens()) {
    why_not = absl::StrCat("prior_output_tokens is ", order.prior_output_tokens, ", but it has put out ",
                           job->sequence.output_tokens());
  } else if (!FillsAPage(*job)) {
    why_not = "it does not fill a page yet";
  }
  if (!why_not.empty()) {
    v1::PrefillEvent event;
    FillFailed(Outcome(Cause::kRevoked, absl::StrCat("attempt ", order.from.ToString(), " stays: ", why_not)),
               event.mutable_failed());
    return sink->Write(std::move(event), /*last=*/true);
  }

  // Nothing is written to full pages any more: the sequence may go on.
  const int page_tokens = parts_.pool->layout().page_tokens;
  const int pages = job->sequence.kv_tokens() / page_tokens;
  const std::span<const PageHash> names = job->sequence.page_names();
  const auto named = names.first(std::min(names.size(), static_cast<size_t>(pages)));
  job->departure = Departure{order, std::move(sink), pages};
  ++job->reading;
  Log(LogLevel::kDebug, "decode.migrating",
      {{"request", order.from.request.ToString()},
       {"attempt", order.from.attempt},
       {"to_attempt", order.to.attempt},
       {"to", order.target.worker_id},
       {"tokens", pages * page_tokens}});
  EngineThread* thread = parts_.thread;
  parts_.sender->Reserve(
      order.to, order.target, pages * page_tokens, {named.begin(), named.end()},
      {.on_queued = [] {},
       .on_granted = [this, thread, order] { thread->Post([this, order] { OnDepartureGranted(order); }); },
       .on_flushed = [this, thread, order] { thread->Post([this, order] { OnDepartureFlushed(order); }); },
       .on_failed = [this, thread, order](
                        const Outcome& why) { thread->Post([this, order, why] { OnDepartureFailed(order, why); }); },
       .on_done =
           [this, thread, order](const HandoffStats& stats) {
             thread->Post([this, order, stats] { OnDeparted(order, stats); });
           }});
}

void DecodeEngine::CancelMigration(const MigrationOrder& order) {
  Job* job = FindDeparting(order);
  if (job != nullptr) AbortDeparture(*job, Outcome(Cause::kCancelled, "the router cancelled the migration"));
}

DecodeEngine::Job* DecodeEngine::FindDeparting(const MigrationOrder& order) {
  Job* job = jobs_.Find(order.from);
  return job != nullptr && job->departure.has_value() && job->departure->order.to == order.to ? job : nullptr;
}

void DecodeEngine::OnDepartureGranted(const MigrationOrder& order) {
  Job* job = FindDeparting(order);
  if (job == nullptr) return;
  // It has waited for room: most of it would be computed again while it is at rest.
  const int outside =
      static_cast<int>(job->sequence.tokens().size()) - job->departure->pages * parts_.pool->layout().page_tokens;
  if (outside > limits_.token_budget) {
    return AbortDeparture(
        *job, Outcome(Cause::kRevoked, absl::StrCat(outside, " tokens have come while it waited for room")));
  }
  const auto pages = std::span(job->sequence.page_ids()).first(job->departure->pages);
  for (int layer = 0; layer < parts_.pool->layout().layers; ++layer) {
    parts_.sender->PutLayer(order.to, layer, /*first_page=*/0, pages);
  }
  parts_.sender->Flush(order.to);
}

void DecodeEngine::OnDepartureFlushed(const MigrationOrder& order) {
  Job* job = FindDeparting(order);
  if (job == nullptr) return;
  job->state = State::kAtRest;
  const std::span<const TokenId> tokens = job->sequence.tokens();
  const std::span<const TokenId> since =
      tokens.subspan(job->sequence.attempt().prompt.size() + order.prior_output_tokens);
  parts_.sender->Commit(order.to, {since.begin(), since.end()});
}

void DecodeEngine::OnDepartureFailed(const MigrationOrder& order, const Outcome& why) {
  Job* job = FindDeparting(order);
  if (job == nullptr) return;  // aborted meanwhile: that has its own answer
  if (FailsKvTransfer(why.cause)) parts_.metrics->HandoffFailed(job->sequence.attempt());
  EndDeparture(*job, why);
  OnNoLongerRead(order.from);
}

void DecodeEngine::OnDeparted(const MigrationOrder& order, const HandoffStats& stats) {
  Job* job = FindDeparting(order);
  if (job == nullptr) return;
  parts_.metrics->HandedOver(job->sequence.attempt(), stats);
  Log(LogLevel::kDebug, "decode.migrated",
      {{"request", order.from.request.ToString()},
       {"attempt", order.from.attempt},
       {"to_attempt", order.to.attempt},
       {"bytes", stats.bytes},
       {"transport", stats.transport},
       {"transfer", stats.transfer},
       {"at_rest", stats.exposed}});
  v1::PrefillEvent handed_over;
  handed_over.mutable_handed_over()->set_transfer_seconds(absl::ToDoubleSeconds(stats.transfer));
  handed_over.mutable_handed_over()->set_transfer_exposed_seconds(absl::ToDoubleSeconds(stats.exposed));
  handed_over.mutable_handed_over()->set_kv_bytes(stats.bytes);
  handed_over.mutable_handed_over()->set_transport(stats.transport);
  job->departure->sink->Write(std::move(handed_over), /*last=*/true);
  v1::DecodeEvent migrated;
  migrated.mutable_migrated()->set_to_attempt(order.to.attempt);
  job->sink->Write(std::move(migrated), /*last=*/true);
  job->departure.reset();
  --job->reading;
  End(order.from, Cause::kMigrated);
}

// Our side gives up the handoff, if there is one: the sequence goes on here, or has ended.
void DecodeEngine::AbortDeparture(Job& job, const Outcome& why) {
  if (!job.departure.has_value()) return;
  const AttemptKey from = job.departure->order.from;
  const AttemptKey to = job.departure->order.to;
  EndDeparture(job, why);
  EngineThread* thread = parts_.thread;
  parts_.sender->Abort(to, /*finished=*/false,
                       [this, thread, from] { thread->Post([this, from] { OnNoLongerRead(from); }); });
}

void DecodeEngine::EndDeparture(Job& job, const Outcome& why) {
  const MigrationOrder& order = job.departure->order;
  Log(LogLevel::kWarning, "decode.not_migrated",
      {{"request", order.from.request.ToString()},
       {"attempt", order.from.attempt},
       {"to_attempt", order.to.attempt},
       {"cause", Name(why.cause)},
       {"at_fault", Name(why.at_fault)},
       {"detail", why.detail}});
  v1::PrefillEvent event;
  FillFailed(why, event.mutable_failed());
  job.departure->sink->Write(std::move(event), /*last=*/true);
  job.departure.reset();
  if (job.state == State::kAtRest) job.state = State::kRunning;
}

// One handoff fewer reads the pages of an attempt.
void DecodeEngine::OnNoLongerRead(const AttemptKey& key) {
  Job* job = jobs_.Find(key);
  if (job == nullptr) return;
  --job->reading;
  if (job->state == State::kReleasing) {
    if (job->reading == 0) jobs_.Erase(AttemptKey(key));
  } else if (job->unwanted) {
    Cancel(AttemptKey(key));
  }
}

}  // namespace baton
