// SPDX-License-Identifier: Apache-2.0
#include "router/request_run.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <variant>

#include "common/log.h"
#include "common/steady_time.h"
#include "engine/kv/page_hash.h"
#include "router/metrics.h"
#include "router/worker_connection.h"

namespace baton::router {

namespace {

v1::DecodeTarget Target(const WorkerRef& decode) {
  v1::DecodeTarget target;
  target.set_worker_id(decode.key.id);
  target.set_epoch(decode.key.epoch);
  target.set_handoff_address(decode.handoff_address);
  return target;
}

// How long after its arrival a request without an objective is due. A batch request goes before interactive requests
// that come a minute later.
constexpr absl::Duration kInteractivePatience = absl::Seconds(1);
constexpr absl::Duration kBatchPatience = absl::Seconds(60);

PageHash HashRoot(const RequestSpec& spec) {
  if (spec.tenant.empty()) return PageHashRoot(spec.model, /*adapter=*/"", spec.cache_salt);
  // A hash is no UTF-8 text but by rare chance: no salt of a request without a tenant is equal to it.
  const PageHash owner = PageHashRoot(spec.tenant, "tenant", spec.cache_salt);
  return PageHashRoot(spec.model, /*adapter=*/"", std::string(owner.begin(), owner.end()));
}

}  // namespace

using DecodeCall = StreamCall<v1::DecodeRequest, v1::DecodeEvent>;
using PrefillCall = StreamCall<v1::PrefillRequest, v1::PrefillEvent>;
using MigrateCall = StreamCall<v1::MigrateRequest, v1::PrefillEvent>;

// The calls of an open attempt. Calls of earlier attempts are cancelled and stay alive on their own until they end.
struct RequestRun::Calls {
  Placement placement;
  std::shared_ptr<DecodeCall> decode;
  std::shared_ptr<PrefillCall> prefill;
  std::shared_ptr<MigrateCall> migrate;  // instead of `prefill`
  // Made when the decode call is opened; both calls carry the header.
  v1::AttemptHeader header;
};

RequestRun::RequestRun(Options options)
    : options_(std::move(options)),
      machine_(options_.spec, *options_.assets->tokenizer, options_.retry, options_.received),
      is_batch_(options_.spec.is_batch) {}

RequestRun::~RequestRun() = default;

std::shared_ptr<RequestRun> RequestRun::Start(Options options) {
  std::shared_ptr<RequestRun> run(new RequestRun(std::move(options)));
  run->strand_.Post([run] {
    run->deadline_timer_.Start(run->TimeLeft(), [weak = run->weak_from_this()] {
      if (const auto self = weak.lock())
        self->Handle([](RequestMachine& machine) { machine.OnDeadline(SteadyTime::Now()); });
    });
    run->machine_.Start();
    run->RunActions();
  });
  return run;
}

void RequestRun::Cancel(const absl::Status& why) {
  Handle([this, why](RequestMachine& machine) {
    // gRPC also cancels a call whose deadline has passed: the client did not cancel that call.
    if (TimeLeft() <= absl::ZeroDuration()) return machine.OnDeadline(SteadyTime::Now());
    machine.OnCancelled(SteadyTime::Now(), why);
  });
}

template <typename Event>
void RequestRun::Handle(Event event) {
  strand_.Post([self = shared_from_this(), event = std::move(event)] {
    event(self->machine_);
    self->RunActions();
  });
}

void RequestRun::RunActions() {
  for (Action& action : machine_.TakeActions()) {
    std::visit([this](auto& one) { Do(one); }, action);
  }
}

absl::Duration RequestRun::TimeLeft() const { return options_.received + options_.timeout - SteadyTime::Now(); }

// ---------------------------------------------------------------------------------------------------------- attempts

PlacementQuery RequestRun::MakeQuery() {
  PlacementQuery query;
  query.model = options_.spec.model;
  query.assets_fingerprint = options_.spec.assets_fingerprint;
  query.numerics_id = numerics_id_;
  query.prompt_tokens = static_cast<uint32_t>(options_.spec.prompt.size() + machine_.output().size());
  query.total_tokens = static_cast<uint32_t>(options_.spec.prompt.size()) + options_.spec.sampling.max_tokens();
  query.pages = PagesOfContext();
  query.page_tokens = options_.page_tokens;
  query.waited = SteadyTime::Now() - options_.received;
  query.time_left = TimeLeft();
  query.has_begun = !machine_.output().empty();
  if (!query.has_begun) query.ttft_slo = options_.spec.objectives.ttft;
  query.tpot_slo = options_.spec.objectives.tpot;
  query.tenant = options_.spec.tenant;
  query.is_batch = is_batch_;
  query.request = options_.id;
  query.due = DueTime();
  query.when_late = options_.spec.when_late;
  query.pin = options_.spec.pin;
  query.explain = LogEnabled(LogLevel::kDebug) || (options_.trace != nullptr && options_.trace->sampled());
  return query;
}

void RequestRun::Do(action::Place& place) {
  PlacementQuery query = MakeQuery();
  query.avoid = std::move(place.avoid);
  if (options_.trace != nullptr) options_.trace->OnPlacing(SteadyTime::Now());
  PlacementResult result = options_.placer->Place(query);
  if (result.kind == PlacementResult::Kind::kPlaced) {
    numerics_id_ = result.placement.numerics_id;
    is_batch_ = result.placement.is_batch;
  }
  // Posts the result as an event: the machine is never called from within its own actions.
  Handle([result = std::move(result)](RequestMachine& machine) { machine.OnPlaced(SteadyTime::Now(), result); });
}

void RequestRun::Do(action::PlaceMigration& place) {
  PlacementQuery query = MakeQuery();
  query.avoid = std::move(place.avoid);
  query.migrates = true;
  if (options_.trace != nullptr) options_.trace->OnPlacing(SteadyTime::Now());
  PlacementResult result = options_.placer->Place(query);
  Handle(
      [result = std::move(result)](RequestMachine& machine) { machine.OnMigrationPlaced(SteadyTime::Now(), result); });
}

std::vector<PageKey> RequestRun::PagesOfContext() {
  if (options_.page_tokens == 0) return {};
  std::vector<TokenId> tokens = options_.spec.prompt;
  tokens.insert(tokens.end(), machine_.output().begin(), machine_.output().end());
  tokens.pop_back();  // a worker always computes the last token
  ExtendPageHashes(HashRoot(options_.spec), tokens, static_cast<int>(options_.page_tokens), page_hashes_);
  std::vector<PageKey> keys;
  keys.reserve(page_hashes_.size());
  for (const PageHash& hash : page_hashes_) keys.push_back(ToKey(hash));
  return keys;
}

absl::Time RequestRun::DueTime() const {
  if (is_batch_) return options_.arrival + kBatchPatience;
  const absl::Duration objective = options_.spec.objectives.ttft;
  return options_.arrival + (objective > absl::ZeroDuration() ? objective : kInteractivePatience);
}

v1::AttemptHeader RequestRun::MakeHeader(uint32_t attempt, const Placement& placement) const {
  const RequestSpec& spec = options_.spec;
  const std::vector<TokenId>& prior = machine_.output();
  v1::AttemptHeader header;
  header.set_protocol(v1::WORKER_PROTOCOL_CURRENT);
  header.set_request_id(options_.id.ToBytes());
  header.set_attempt(attempt);
  header.set_model(placement.model);
  header.set_numerics_id(placement.numerics_id);
  header.set_due_unix_nanos(absl::ToUnixNanos(DueTime()));
  header.set_tenant(spec.tenant);
  header.set_priority(is_batch_ ? v1::PRIORITY_BATCH : v1::PRIORITY_INTERACTIVE);
  if (!is_batch_ && !spec.pin && spec.when_late == WhenLate::kRefuse && prior.empty() &&
      spec.objectives.ttft > absl::ZeroDuration()) {
    const absl::Duration left = spec.objectives.ttft - (SteadyTime::Now() - options_.received);
    header.set_first_token_within_seconds(absl::ToDoubleSeconds(std::max(left, absl::Milliseconds(1))));
  }
  header.mutable_prompt_token_ids()->Assign(spec.prompt.begin(), spec.prompt.end());
  header.mutable_prior_output_token_ids()->Assign(prior.begin(), prior.end());
  *header.mutable_sampling() = spec.sampling;
  const PageHash root = HashRoot(spec);
  header.set_page_hash_root(root.data(), root.size());
  header.set_is_probe(options_.is_probe);
  header.set_tpot_slo_seconds(absl::ToDoubleSeconds(spec.objectives.tpot));
  return header;
}

void RequestRun::Do(action::OpenDecode& open) {
  const uint32_t attempt = open.attempt;
  Calls& calls = *(calls_[attempt] = std::make_unique<Calls>());
  calls.placement = std::move(open.placement);
  const Placement& placement = calls.placement;
  Log(LogLevel::kDebug, "attempt.started",
      {{"request", options_.id.ToString()},
       {"attempt", attempt},
       {"prefill", placement.local ? "local" : placement.prefill.key.id},
       {"decode", placement.decode.key.id},
       {"cached", placement.cached_tokens},
       {"estimates", placement.estimates},
       {"prior_tokens", machine_.output().size()}});
  attempt_opened_ = SteadyTime::Now();
  if (placement.is_batch && !options_.spec.is_batch) late_ = WhenLate::kServe;
  if (options_.metrics != nullptr && placement.pair != 0) {
    options_.metrics->Placed(options_.spec.model, placement.local, placement.cached_tokens);
  }
  calls.header = MakeHeader(attempt, placement);
  if (options_.trace != nullptr) {
    calls.header.set_traceparent(options_.trace->OnPlaced(*attempt_opened_, attempt, placement));
  }
  v1::DecodeRequest request;
  *request.mutable_header() = calls.header;
  request.set_prefill_locally(placement.local);
  WorkerConnection& worker = *placement.decode.connection;
  calls.decode = DecodeCall::Start(
      {worker.calls(), TimeLeft()}, std::move(request),
      [&worker](auto* context, const auto* message, auto* reactor) {
        worker.decode().async()->Decode(context, message, reactor);
      },
      [self = shared_from_this(), attempt](v1::DecodeEvent event) {
        self->Handle([trace = self->options_.trace.get(), attempt, event = std::move(event)](RequestMachine& machine) {
          if (trace != nullptr) trace->OnDecodeEvent(SteadyTime::Now(), attempt, event);
          machine.OnDecodeEvent(SteadyTime::Now(), attempt, event);
        });
      },
      [self = shared_from_this(), attempt](absl::Status status) {
        self->Handle([attempt, status = std::move(status)](RequestMachine& machine) {
          machine.OnDecodeEnded(SteadyTime::Now(), attempt, status);
        });
      });
}

// Starts a call whose events count as prefill events of `attempt`.
template <typename Call, typename Request, typename Method>
std::shared_ptr<Call> RequestRun::StartPrefill(uint32_t attempt, WorkerConnection& worker, Request request,
                                               Method method) {
  return Call::Start(
      {worker.calls(), TimeLeft()}, std::move(request), std::move(method),
      [self = shared_from_this(), attempt](v1::PrefillEvent event) {
        self->Handle([trace = self->options_.trace.get(), attempt, event = std::move(event)](RequestMachine& machine) {
          if (trace != nullptr) trace->OnPrefillEvent(SteadyTime::Now(), attempt, event);
          machine.OnPrefillEvent(SteadyTime::Now(), attempt, event);
        });
      },
      [self = shared_from_this(), attempt](absl::Status status) {
        self->Handle([attempt, status = std::move(status)](RequestMachine& machine) {
          machine.OnPrefillEnded(SteadyTime::Now(), attempt, status);
        });
      });
}

void RequestRun::Do(action::SubmitPrefill& submit) {
  Calls& calls = *calls_.at(submit.attempt);
  v1::PrefillRequest request;
  *request.mutable_header() = std::move(calls.header);
  *request.mutable_target() = Target(calls.placement.decode);
  WorkerConnection& worker = *calls.placement.prefill.connection;
  calls.prefill = StartPrefill<PrefillCall>(submit.attempt, worker, std::move(request),
                                            [&worker](auto* context, const auto* message, auto* reactor) {
                                              worker.prefill().async()->Prefill(context, message, reactor);
                                            });
}

void RequestRun::Do(action::Migrate& migrate) {
  Calls& calls = *calls_.at(migrate.attempt);
  calls.header.Clear();  // the draining worker has the prompt and the output
  v1::MigrateRequest request;
  request.set_protocol(v1::WORKER_PROTOCOL_CURRENT);
  request.set_request_id(options_.id.ToBytes());
  request.set_from_attempt(migrate.from);
  request.set_to_attempt(migrate.attempt);
  request.set_prior_output_tokens(migrate.prior_output_tokens);
  *request.mutable_target() = Target(calls.placement.decode);
  WorkerConnection& worker = *calls.placement.prefill.connection;
  calls.migrate = StartPrefill<MigrateCall>(migrate.attempt, worker, std::move(request),
                                            [&worker](auto* context, const auto* message, auto* reactor) {
                                              worker.decode().async()->Migrate(context, message, reactor);
                                            });
}

void RequestRun::Do(action::CancelDecode& cancel) {
  if (const auto call = std::exchange(calls_.at(cancel.attempt)->decode, nullptr)) call->Cancel();
}

void RequestRun::Do(action::CancelPrefill& cancel) {
  Calls& calls = *calls_.at(cancel.attempt);
  if (const auto call = std::exchange(calls.prefill, nullptr)) call->Cancel();
  if (const auto call = std::exchange(calls.migrate, nullptr)) call->Cancel();
}

void RequestRun::Do(action::WakeAfter& wake) {
  wake_timer_.Start(wake.delay, [weak = weak_from_this(), wake = wake.wake] {
    if (const auto self = weak.lock()) {
      self->Handle([wake](RequestMachine& machine) { machine.OnWake(SteadyTime::Now(), wake); });
    }
  });
}

void RequestRun::Do(action::AttemptEnded& ended) {
  const Outcome& outcome = ended.outcome;
  // The pair's state tells of a failed probe.
  const bool is_expected =
      options_.is_probe || NextStepAfter(outcome.cause) == NextStep::kDone || outcome.cause == Cause::kCancelled;
  Log(is_expected ? LogLevel::kDebug : LogLevel::kWarning, "attempt.ended",
      {{"request", options_.id.ToString()},
       {"attempt", ended.attempt},
       {"outcome", Name(outcome.cause)},
       {"at_fault", Name(outcome.at_fault)},
       {"detail", outcome.detail}});
  if (ended.broken_pair) options_.placer->PairBroken(*ended.broken_pair, outcome.detail);
  if (options_.metrics != nullptr) options_.metrics->AttemptEnded(options_.spec.model, outcome.cause);
  if (options_.trace != nullptr) {
    const bool succeeded = outcome.cause == Cause::kFinished || outcome.cause == Cause::kMigrated;
    options_.trace->OnAttemptEnded(SteadyTime::Now(), ended.attempt, succeeded ? "" : Name(outcome.cause));
  }
  calls_.erase(ended.attempt);  // both calls have ended or were cancelled
}

void RequestRun::Do(action::HandedOver& handed_over) {
  options_.placer->HandedOver(handed_over.pair, handed_over.measured);
}

void RequestRun::Do(action::Resumed& resumed) {
  Log(LogLevel::kDebug, "request.resumed",
      {{"request", options_.id.ToString()},
       {"attempt", resumed.attempt},
       {"after", Name(resumed.after)},
       {"pause", resumed.pause}});
  if (options_.metrics != nullptr) options_.metrics->Resumed(options_.spec.model, resumed.after, resumed.pause);
}

void RequestRun::Do(action::Disagreement& disagreement) {
  Log(LogLevel::kError, "request.tokens_disagree",
      {{"request", options_.id.ToString()},
       {"output_index", disagreement.output_index},
       {"had", disagreement.had},
       {"got", disagreement.got},
       {"numerics_id", numerics_id_}});
  if (options_.metrics != nullptr) options_.metrics->TokenDisagreement(options_.spec.model);
}

// -------------------------------------------------------------------------------------------------------- the answer

void RequestRun::Do(action::Send& send) {
  if (options_.metrics != nullptr) ObserveTokens(send.chunk);
  options_.sink->OnChunk(std::move(send.chunk));
}

void RequestRun::Do(action::Finish& finish) {
  const std::string_view outcome = finish.finish.reason() == v1::FINISH_REASON_STOP ? "stop" : "length";
  const v1::Usage& usage = finish.finish.usage();
  const v1::Timings& timings = finish.finish.timings();
  Log(options_.is_probe ? LogLevel::kDebug : LogLevel::kInfo, "request.finished",
      {{"request", options_.id.ToString()},
       {"label", options_.label},
       {"trace", options_.trace == nullptr ? "" : options_.trace->trace_id()},
       {"model", options_.spec.model},
       {"priority", priority()},
       {"outcome", outcome},
       {"attempts", machine_.attempts()},
       {"prompt_tokens", usage.prompt_tokens()},
       {"cached_tokens", usage.cached_prompt_tokens()},
       {"output_tokens", usage.completion_tokens()},
       {"queue_seconds", timings.queue_seconds()},
       {"prefill_seconds", timings.prefill_seconds()},
       {"transfer_seconds", timings.transfer_seconds()},
       {"ttft_seconds", timings.ttft_seconds()},
       {"tpot_seconds", timings.tpot_seconds()},
       {"total_seconds", timings.total_seconds()}});
  if (options_.metrics != nullptr) options_.metrics->Finished(options_.spec.model, usage, timings);
  NoteObjectives(finish.finish.slo().ttft_met(), finish.finish.slo().tpot_met());
  NoteAnswer(finish.finish);
  finish.finish.set_request_id(options_.id.ToString());
  const std::shared_ptr<ResponseSink> sink = std::move(options_.sink);
  End(outcome, "");
  sink->OnFinish(std::move(finish.finish));
}

void RequestRun::Do(action::Fail& fail) {
  const std::string outcome = absl::StatusCodeToString(fail.status.code());
  Log(options_.is_probe ? LogLevel::kDebug : LogLevel::kInfo, "request.finished",
      {{"request", options_.id.ToString()},
       {"label", options_.label},
       {"trace", options_.trace == nullptr ? "" : options_.trace->trace_id()},
       {"model", options_.spec.model},
       {"priority", priority()},
       {"outcome", outcome},
       {"attempts", machine_.attempts()},
       {"prompt_tokens", options_.spec.prompt.size()},
       {"output_tokens", machine_.output().size()},
       {"total_seconds", absl::ToDoubleSeconds(SteadyTime::Now() - options_.received)},
       {"detail", std::string(fail.status.message())}});
  if (fail.cause == Cause::kTooLate && absl::IsResourceExhausted(fail.status)) late_ = WhenLate::kRefuse;
  // A client that leaves says nothing of the service.
  if (!absl::IsCancelled(fail.status)) NoteObjectives(false, false);
  const std::shared_ptr<ResponseSink> sink = std::move(options_.sink);
  End(outcome, outcome);
  sink->OnFail(fail.status, fail.retry_after);
}

// Releases the run's resources. Later ends of calls find a machine in kDone.
void RequestRun::End(std::string_view outcome, std::string_view error) {
  if (options_.trace != nullptr && options_.tracer != nullptr) {
    options_.tracer->Add(options_.trace->End(SteadyTime::Now(), error), options_.trace->sampled());
  }
  if (options_.metrics != nullptr) {
    const absl::Duration total = SteadyTime::Now() - options_.received;
    if (!last_token_) {
      options_.metrics->Queued(options_.spec.model, attempt_opened_ ? *attempt_opened_ - options_.received : total);
    }
    options_.metrics->RequestEnded(options_.spec.model, outcome, total);
    if (late_) options_.metrics->Late(options_.spec.model, *late_);
  }
  wake_timer_.Cancel();
  deadline_timer_.Cancel();
  calls_.clear();
}

}  // namespace baton::router
