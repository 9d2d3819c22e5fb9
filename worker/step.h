// Runs one step: the forward pass over the sequences' shares, which samples one token for each sequence whose pending
// tokens are all computed. Mechanism only; what to run is decided in worker/schedule.h.
//
// Used on the engine's thread only.
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
  // Both must outlive the runner.
  StepRunner(Model* model, PagePool* pool) : model_(*model), pool_(*pool) {}

  // On success every entry's KV has advanced. On failure nothing has, nor when `layer_done` called the step off
  // (CANCELLED).
  absl::Status Run(std::vector<StepEntry>& entries, const LayerDone& layer_done);

 private:
  Model& model_;
  PagePool& pool_;
  std::vector<SequenceInput> batch_;
  ForwardOutput output_;
};

}  // namespace baton
