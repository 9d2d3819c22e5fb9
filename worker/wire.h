// Engine results as messages to the router.
#pragma once

#include "baton/v1/worker.pb.h"
#include "common/outcome_proto.h"
#include "engine/sampling/sampler.h"
#include "worker/sequence.h"

namespace baton {

// `logprobs` are filled in when `params` ask for them.
void FillTokenEvent(uint32_t output_index, const SampledToken& sampled, const SamplingParams& params,
                    v1::TokenEvent* event);
// `end` is not kNo.
void FillFinished(Sequence::End end, TokenId last_token, v1::WorkerFinished* finished);

}  // namespace baton
