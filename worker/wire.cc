#include "worker/wire.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"

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

void FillFailed(v1::AttemptFailure cause, const absl::Status& why, v1::AttemptFailed* failed) {
  constexpr uint32_t kRetryAfterMs = 200;
  failed->set_cause(cause);
  failed->set_message(std::string(why.message()));
  if (cause == v1::ATTEMPT_FAILURE_OVERLOADED || cause == v1::ATTEMPT_FAILURE_PEER_OVERLOADED) {
    failed->set_retry_after_ms(kRetryAfterMs);
  }
}

v1::AttemptFailure ReceiveFailureCause(const absl::Status& why) {
  switch (why.code()) {
    case absl::StatusCode::kInvalidArgument:
      return v1::ATTEMPT_FAILURE_INVALID;
    case absl::StatusCode::kResourceExhausted:
      return v1::ATTEMPT_FAILURE_OVERLOADED;
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kFailedPrecondition:  // the decode worker knows the attempt no more
      return v1::ATTEMPT_FAILURE_REVOKED;
    default:
      return v1::ATTEMPT_FAILURE_PEER_LOST;
  }
}

v1::AttemptFailure SendFailureCause(const absl::Status& why) {
  const v1::AttemptFailure cause = ReceiveFailureCause(why);
  return cause == v1::ATTEMPT_FAILURE_OVERLOADED ? v1::ATTEMPT_FAILURE_PEER_OVERLOADED : cause;
}

std::string CauseName(v1::AttemptFailure cause) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::AttemptFailure_Name(cause), "ATTEMPT_FAILURE_"));
}

}  // namespace baton
