// SPDX-License-Identifier: Apache-2.0
#include "worker/reports.h"

#include <utility>

#include "common/outcome_proto.h"

namespace baton {
namespace {

// `logprobs` are filled in when `params` ask for them.
void FillTokenEvent(uint32_t output_index, const SampledToken& sampled, const SamplingParams& params,
                    v1::TokenEvent* event) {
  event->set_output_index(output_index);
  event->set_token_id(sampled.token);
  if (!params.logprobs.has_value()) return;
  v1::TokenLogprobs& logprobs = *event->mutable_logprobs();
  logprobs.mutable_chosen()->set_token_id(sampled.token);
  logprobs.mutable_chosen()->set_logprob(sampled.logprob);
  for (const auto& [token, logprob] : sampled.top) {
    v1::TokenLogprob& top = *logprobs.add_top();
    top.set_token_id(token);
    top.set_logprob(logprob);
  }
}

// `end` is not kNo.
void FillFinished(Sequence::End end, TokenId last_token, v1::WorkerFinished* finished) {
  if (end == Sequence::End::kStop) {
    finished->set_reason(v1::FINISH_REASON_STOP);
    finished->set_stop_token_id(last_token);
  } else {
    finished->set_reason(v1::FINISH_REASON_LENGTH);
  }
}

template <typename Event>
class Reports : public AttemptEvents {
 public:
  explicit Reports(std::shared_ptr<EventSink<Event>> sink) : sink_(std::move(sink)) {}

  void OnFailed(const Outcome& why) final {
    Event event;
    FillFailed(why, event.mutable_failed());
    WriteLast(std::move(event));
  }
  bool cancelled() const final { return sink_->cancelled(); }

 protected:
  void Write(Event event) { sink_->Write(std::move(event), /*last=*/false); }
  void WriteLast(Event event) { sink_->Write(std::move(event), /*last=*/true); }

 private:
  const std::shared_ptr<EventSink<Event>> sink_;
};

void FillChunks(const PromptFigures& figures, google::protobuf::RepeatedPtrField<v1::PromptChunk>* out) {
  for (const PromptChunk& chunk : figures.chunks) {
    v1::PromptChunk& filled = *out->Add();
    filled.set_tokens(static_cast<uint32_t>(chunk.tokens));
    filled.set_start_seconds(absl::ToDoubleSeconds(chunk.start));
    filled.set_seconds(absl::ToDoubleSeconds(chunk.duration));
  }
}

class PrefillReports final : public Reports<v1::PrefillEvent> {
 public:
  using Reports::Reports;

  void OnPromptStarted(absl::Duration queued) override {
    v1::PrefillEvent event;
    event.mutable_started()->set_queue_seconds(absl::ToDoubleSeconds(queued));
    Write(std::move(event));
  }
  void OnToken(uint32_t output_index, const SampledToken& token, const SamplingParams& params) override {
    v1::PrefillEvent event;
    FillTokenEvent(output_index, token, params, event.mutable_first_token());
    Write(std::move(event));
  }
  void OnHandedOver(const PromptFigures& figures, const HandoffStats& stats) override {
    v1::PrefillEvent event;
    v1::HandedOver& done = *event.mutable_handed_over();
    done.set_prefill_seconds(absl::ToDoubleSeconds(figures.prefill));
    done.set_transfer_seconds(absl::ToDoubleSeconds(stats.transfer));
    done.set_transfer_exposed_seconds(absl::ToDoubleSeconds(stats.exposed));
    done.set_kv_bytes(stats.bytes);
    done.set_transport(stats.transport);
    done.set_cached_prompt_tokens(figures.cached_tokens);
    FillChunks(figures, done.mutable_chunks());
    WriteLast(std::move(event));
  }
  void OnFinished(Sequence::End end, TokenId last_token, const PromptFigures& figures) override {
    v1::PrefillEvent event;
    v1::WorkerFinished& finished = *event.mutable_finished();
    FillFinished(end, last_token, &finished);
    finished.set_prefill_seconds(absl::ToDoubleSeconds(figures.prefill));
    finished.set_cached_prompt_tokens(figures.cached_tokens);
    FillChunks(figures, finished.mutable_chunks());
    WriteLast(std::move(event));
  }
};

class DecodeReports final : public Reports<v1::DecodeEvent> {
 public:
  using Reports::Reports;

  void OnAccepted() override {
    v1::DecodeEvent event;
    event.mutable_accepted();
    Write(std::move(event));
  }
  void OnDecodeStarted(const PromptFigures& figures, uint32_t next_output_index) override {
    v1::DecodeEvent event;
    v1::DecodeStarted& started = *event.mutable_started();
    started.set_prefill_seconds(absl::ToDoubleSeconds(figures.prefill));
    started.set_queue_seconds(absl::ToDoubleSeconds(figures.queued));
    started.set_cached_prompt_tokens(figures.cached_tokens);
    started.set_next_output_index(next_output_index);
    FillChunks(figures, started.mutable_chunks());
    Write(std::move(event));
  }
  void OnToken(uint32_t output_index, const SampledToken& token, const SamplingParams& params) override {
    v1::DecodeEvent event;
    FillTokenEvent(output_index, token, params, event.mutable_tokens()->add_tokens());
    Write(std::move(event));
  }
  void OnDraining() override {
    v1::DecodeEvent event;
    event.mutable_draining();
    Write(std::move(event));
  }
  void OnFinished(Sequence::End end, TokenId last_token, const PromptFigures& /*figures*/) override {
    v1::DecodeEvent event;
    FillFinished(end, last_token, event.mutable_finished());
    WriteLast(std::move(event));
  }
  void OnMigrated(uint32_t to_attempt) override {
    v1::DecodeEvent event;
    event.mutable_migrated()->set_to_attempt(to_attempt);
    WriteLast(std::move(event));
  }
};

}  // namespace

std::shared_ptr<AttemptEvents> ReportTo(std::shared_ptr<EventSink<v1::PrefillEvent>> sink) {
  return std::make_shared<PrefillReports>(std::move(sink));
}

std::shared_ptr<AttemptEvents> ReportTo(std::shared_ptr<EventSink<v1::DecodeEvent>> sink) {
  return std::make_shared<DecodeReports>(std::move(sink));
}

}  // namespace baton
