// SPDX-License-Identifier: Apache-2.0
#include "worker/step.h"

#include <utility>

#include "common/status_macros.h"

namespace baton {

absl::Status StepRunner::Run(std::vector<StepEntry>& entries, const LayerDone& layer_done) {
  batch_.clear();
  for (const StepEntry& entry : entries) {
    const Sequence& sequence = *entry.sequence;
    batch_.push_back({.tokens = std::span(sequence.tokens()).subspan(sequence.kv_tokens(), entry.tokens),
                      .start_position = sequence.kv_tokens(),
                      .pages = sequence.page_ids(),
                      .want = entry.completes() ? Want::kToken : Want::kNothing,
                      .sampling = &sequence.attempt().sampling,
                      .history = &sequence.history()});
  }
  BATON_RETURN_IF_ERROR(model_.Forward(batch_, pool_, layer_done, output_));
  for (size_t i = 0; i < entries.size(); ++i) {
    StepEntry& entry = entries[i];
    if (entry.completes()) entry.sampled = std::move(output_.sampled[i]);
    entry.sequence->AdvanceKv(entry.tokens);
  }
  return absl::OkStatus();
}

}  // namespace baton
