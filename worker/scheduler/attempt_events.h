// SPDX-License-Identifier: Apache-2.0
// The scheduler's reports about an attempt to the attempt's caller. A service turns reports into messages of its
// stream; a test records reports.
//
// Called on the engine thread. No call blocks. After a final report no other report follows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/time/time.h"
#include "common/outcome.h"
#include "engine/sampling/sampler.h"
#include "kvtransfer/endpoints/endpoints.h"
#include "worker/sequence.h"

namespace baton {

// A step's part of a prompt.
struct PromptChunk {
  int tokens = 0;
  absl::Duration start;  // since the prompt's first step began
  absl::Duration duration;
};

// The figures of a prompt that this worker has computed.
struct PromptFigures {
  absl::Duration queued;   // submission to first step
  absl::Duration prefill;  // first step to first token
  int cached_tokens = 0;   // in pages that this worker had
  std::span<const PromptChunk> chunks;
};

class AttemptEvents {
 public:
  virtual ~AttemptEvents() = default;

  // The worker has taken the attempt.
  virtual void OnAccepted() {}
  // The first step of the prompt begins.
  virtual void OnPromptStarted(absl::Duration /*queued*/) {}
  // The sequence decodes here from output index `next_output_index` on.
  virtual void OnDecodeStarted(const PromptFigures& /*figures*/, uint32_t /*next_output_index*/) {}
  virtual void OnToken(uint32_t output_index, const SampledToken& token, const SamplingParams& params) = 0;
  // The worker drains: the sequence should be migrated.
  virtual void OnDraining() {}

  // Final reports.
  virtual void OnHandedOver(const PromptFigures& /*figures*/, const HandoffStats& /*stats*/) {}
  virtual void OnFinished(Sequence::End end, TokenId last_token, const PromptFigures& figures) = 0;
  virtual void OnMigrated(uint32_t /*to_attempt*/) {}
  virtual void OnFailed(const Outcome& why) = 0;

  // Returns whether the caller is gone: nobody needs the attempt's results. Thread-safe.
  virtual bool cancelled() const = 0;
};

}  // namespace baton
