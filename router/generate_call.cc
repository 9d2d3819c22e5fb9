// SPDX-License-Identifier: Apache-2.0
#include "router/generate_call.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/random/random.h"
#include "common/grpc.h"
#include "common/grpc_message.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "common/steady_time.h"
#include "router/metrics.h"
#include "router/request_spec.h"

namespace baton::router {
namespace {

// Keeps a merged chunk far below any client's message limit, also with 20 logprobs per token.
constexpr int kMaxChunkTokens = 256;

// The hint in a refusal of a full router: about the time until a running request ends.
constexpr absl::Duration kFullRetryAfter = absl::Seconds(1);

// A failed request's client has this long to read earlier chunks, and so to see the status.
constexpr absl::Duration kStatusGrace = absl::Seconds(1);

void Merge(v1::Chunk chunk, std::deque<v1::Chunk>& chunks) {
  if (!chunks.empty() && chunks.back().token_ids_size() + chunk.token_ids_size() <= kMaxChunkTokens) {
    v1::Chunk& last = chunks.back();
    last.mutable_text()->append(chunk.text());
    last.mutable_token_ids()->MergeFrom(chunk.token_ids());
    last.mutable_logprobs()->MergeFrom(chunk.logprobs());
  } else {
    chunks.push_back(std::move(chunk));
  }
}

absl::Status RouterStopped() { return absl::UnavailableError("the router stopped: drain-timeout is over"); }

// Adds what OpenTelemetry's conventions for generative AI name.
void NoteRequest(const v1::GenerateRequest& request, const RequestSpec& spec, RequestTrace& trace) {
  trace.Note("gen_ai.operation.name", request.has_chat() ? "chat" : "text_completion");
  trace.Note("gen_ai.provider.name", "baton");
  trace.Note("gen_ai.request.model", spec.model);
  trace.Note("gen_ai.request.max_tokens", spec.sampling.max_tokens());
  trace.Note("gen_ai.request.temperature", static_cast<double>(spec.sampling.temperature()));
  trace.Note("gen_ai.request.top_p", static_cast<double>(spec.sampling.top_p()));
  trace.Note("baton.seed", absl::StrCat(spec.sampling.seed()));  // may be larger than the largest int64
}

uint64_t DrawSeed() {
  absl::BitGen random;
  return absl::Uniform<uint64_t>(random);
}

}  // namespace

GenerateCall* GenerateCall::Start(const ServiceContext& context, grpc::CallbackServerContext* call,
                                  const grpc::ByteBuffer& bytes) {
  std::shared_ptr<GenerateCall> self(new GenerateCall(context, call));
  self->self_ = self;
  const SteadyTime received = SteadyTime::Now();
  call->AddInitialMetadata("baton-request-id", self->id_.ToString());
  v1::GenerateRequest request;
  absl::Status status = ParseMessage(bytes, request);
  self->trace_ = std::make_unique<RequestTrace>(
      RequestTrace::Start{.context = context.tracer->Begin(self->id_, self->Traceparent()),
                          .id = self->id_,
                          .label = request.request_label(),
                          .received = received,
                          .arrival = absl::Now()});
  if (status.ok()) status = self->Run(request);
  if (!status.ok()) {
    Log(LogLevel::kInfo, "request.refused",
        {{"request", self->id_.ToString()}, {"label", request.request_label()}, {"status", status}});
    context.metrics->RequestEnded(self->model_, absl::StatusCodeToString(status.code()), SteadyTime::Now() - received);
    if (self->trace_ != nullptr) {
      const bool sampled = self->trace_->sampled();
      context.tracer->Add(self->trace_->End(SteadyTime::Now(), absl::StatusCodeToString(status.code())), sampled);
    }
    // Only a full admission deserves a retry hint: any other refusal would come again.
    const bool is_full = !self->ticket_.held() && absl::IsResourceExhausted(status);
    self->OnFail(status, is_full ? kFullRetryAfter : absl::ZeroDuration());
  }
  return self.get();
}

absl::Status GenerateCall::Run(const v1::GenerateRequest& request) {
  RequestRun::Options options;
  options.id = id_;
  options.label = request.request_label();
  options.received = SteadyTime::Now();
  options.arrival = absl::Now();
  options.timeout = Timeout();
  deadline_ = options.received + options.timeout;
  BATON_ASSIGN_OR_RETURN(ticket_, context_.admission->Enter());
  BATON_RETURN_IF_ERROR(CheckRequest(request));
  if (request.has_pin() && !context_.allow_pins) {
    return absl::PermissionDeniedError("pin: this router takes no pinned requests (--pins off)");
  }
  BATON_ASSIGN_OR_RETURN(const ServedModel model, context_.registry->FindModel(request.model()));
  model_ = model.name;
  options.tracer = context_.tracer;
  const SteadyTime before = SteadyTime::Now();
  BATON_ASSIGN_OR_RETURN(options.spec, ResolveRequest(request, *model.assets, model.limits,
                                                      {.seed = DrawSeed(),
                                                       .objectives = context_.objectives.Of(model.name),
                                                       .when_late = context_.when_late}));
  trace_->Tokenized(before, SteadyTime::Now(), options.spec.prompt.size());
  options.spec.model = model.name;
  BATON_RETURN_IF_ERROR(context_.registry->CheckPin(options.spec));
  NoteRequest(request, options.spec, *trace_);
  options.assets = model.assets;
  options.page_tokens = model.limits.page_tokens;
  options.retry = context_.retry;
  options.placer = context_.registry;
  options.sink = shared_from_this();
  options.metrics = context_.metrics;
  Log(LogLevel::kDebug, "request.received",
      {{"request", options.id.ToString()},
       {"label", request.request_label()},
       {"model", model.name},
       {"prompt_tokens", options.spec.prompt.size()},
       {"max_tokens", options.spec.sampling.max_tokens()}});
  options.trace = std::move(trace_);
  run_ = RequestRun::Start(std::move(options));
  ticket_.WhenStopped([weak = std::weak_ptr(run_)] {
    if (const auto run = weak.lock()) run->Cancel(RouterStopped());
  });
  return absl::OkStatus();
}

absl::Duration GenerateCall::Timeout() const {
  const absl::Duration left = absl::FromChrono(call_->deadline()) - absl::Now();
  // gRPC represents "no deadline" by a time in the far future.
  return left > absl::Hours(24 * 365) ? context_.default_deadline : left;
}

std::string GenerateCall::Traceparent() const {
  const auto found = call_->client_metadata().find("traceparent");
  return found == call_->client_metadata().end() ? "" : std::string(found->second.data(), found->second.size());
}

void GenerateCall::OnChunk(v1::Chunk chunk) {
  {
    MutexLock lock(mutex_);
    Merge(std::move(chunk), chunks_);
  }
  Pump();
}

void GenerateCall::OnFinish(v1::Finish finish) {
  {
    MutexLock lock(mutex_);
    finish_ = std::move(finish);
    ending_ = Ending{grpc::Status::OK, absl::ZeroDuration()};
  }
  Pump();
  LimitReading(std::max(deadline_ - SteadyTime::Now(), kStatusGrace));
}

void GenerateCall::OnFail(const absl::Status& status, absl::Duration retry_after) {
  {
    MutexLock lock(mutex_);
    ending_ = Ending{ToGrpc(status), retry_after};
  }
  Pump();
  LimitReading(kStatusGrace);
}

void GenerateCall::LimitReading(absl::Duration left) {
  MutexLock lock(mutex_);
  if (ended_) return;
  reading_timer_.Start(left, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->OnReadingOverdue();
  });
}

void GenerateCall::OnReadingOverdue() {
  {
    MutexLock lock(mutex_);
    if (ended_) return;
    cancelling_ = true;
  }
  call_->TryCancel();
  {
    MutexLock lock(mutex_);
    cancelling_ = false;
  }
  Pump();
}

void GenerateCall::Pump() {
  std::optional<Ending> ending;
  v1::GenerateResponse message;
  {
    MutexLock lock(mutex_);
    if (busy_ || cancelling_) return;
    if (broken_) {
      chunks_.clear();
      finish_.reset();
    }
    if (!chunks_.empty()) {
      *message.mutable_chunk() = std::move(chunks_.front());
      chunks_.pop_front();
    } else if (finish_) {
      *message.mutable_finish() = *std::exchange(finish_, std::nullopt);
    } else if (ending_) {
      ending = ending_;
      ended_ = true;
    } else {
      return;
    }
    busy_ = true;
  }
  if (!ending) {
    writing_ = SerializeMessage(message);
    return StartWrite(&writing_);
  }
  if (ending->retry_after > absl::ZeroDuration()) {
    call_->AddTrailingMetadata("retry-after-ms", absl::StrCat(absl::ToInt64Milliseconds(ending->retry_after)));
  }
  Finish(ending->status);
}

void GenerateCall::OnWriteDone(bool ok) {
  {
    MutexLock lock(mutex_);
    busy_ = false;
    broken_ = !ok;
  }
  if (!ok) Cancel();
  Pump();
}

void GenerateCall::OnCancel() { Cancel(); }

void GenerateCall::Cancel() {
  if (run_ == nullptr) return;
  // When the router stops, its server cancels every call.
  run_->Cancel(context_.admission->stopped() ? RouterStopped() : absl::CancelledError("cancelled by the client"));
}

void GenerateCall::OnDone() {
  run_ = nullptr;
  ticket_ = {};     // the router may be destroyed from here on
  self_ = nullptr;  // last: may destroy this call
}

}  // namespace baton::router
