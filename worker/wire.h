// Engine results as messages to the router.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "baton/v1/worker.pb.h"
#include "engine/sampling/sampler.h"
#include "worker/sequence.h"

namespace baton {

// `logprobs` are filled in when `params` ask for them.
void FillTokenEvent(uint32_t output_index, const SampledToken& sampled, const SamplingParams& params,
                    v1::TokenEvent* event);
// `end` is not kNo.
void FillFinished(Sequence::End end, TokenId last_token, v1::WorkerFinished* finished);
void FillFailed(v1::AttemptFailure cause, const absl::Status& why, v1::AttemptFailed* failed);
// Why a handoff failed, in the router's terms: as the side that receives it says it, and the one that hands over, which
// speaks of the other one's refusals, too.
v1::AttemptFailure ReceiveFailureCause(const absl::Status& why);
v1::AttemptFailure SendFailureCause(const absl::Status& why);
// For logs and metrics: "peer_lost".
std::string CauseName(v1::AttemptFailure cause);

}  // namespace baton
