// SPDX-License-Identifier: Apache-2.0
// Runs one step: a forward pass over the sequences' shares. If a sequence's pending tokens are all computed, the step
// samples one token. worker/schedule.h decides what runs.
//
// Used on the engine thread only.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "engine/model/model.h"
#include "engine/sampling/sampler.h"
#include "worker/sequence.h"

namespace baton {

struct StepEntry {
  Sequence* sequence = nullptr;
  int tokens = 0;                       // of its pending ones, to compute in this step
  std::optional<SampledToken> sampled;  // filled by Run; not yet appended to the sequence

  bool completes() const { return tokens == sequence->pending_tokens(); }
};

class StepRunner {
 public:
  // Model and pool must outlive the runner.
  StepRunner(Model* model, PagePool* pool) : model_(*model), pool_(*pool) {}

  // Advances every entry's KV. Advances nothing on failure, or if `layer_done` ended the step (CANCELLED).
  absl::Status Run(std::vector<StepEntry>& entries, const LayerDone& layer_done);

 private:
  Model& model_;
  PagePool& pool_;
  std::vector<SequenceInput> batch_;
  ForwardOutput output_;
};

}  // namespace baton
