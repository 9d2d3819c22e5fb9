#include "worker/wire.h"

namespace baton {

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

void FillFinished(Sequence::End end, TokenId last_token, v1::WorkerFinished* finished) {
  if (end == Sequence::End::kStop) {
    finished->set_reason(v1::FINISH_REASON_STOP);
    finished->set_stop_token_id(last_token);
  } else {
    finished->set_reason(v1::FINISH_REASON_LENGTH);
  }
}

}  // namespace baton
