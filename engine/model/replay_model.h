// A model that computes nothing: for load tests without weights, and for tests of all that stands around a model.
//
// A step takes the time it is told to take. What it says after a token follows from all tokens up to there, and of
// those before the step it knows only what the KV pages hold: into a token's place in every layer's block it writes 8
// bytes that follow from the token and from the 8 bytes of the token before. Each step reads all of them again, of
// every position from a layer that changes from step to step: a page that is missing, late or another's shows as other
// tokens or, where the layers of the last token differ, as an INTERNAL error.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/model/model.h"

namespace baton {

struct ReplayOptions {
  absl::Duration step = absl::Milliseconds(10);  // of every step
  double prefill_tokens_per_second = 10000;      // more than one new token of a sequence: the rest adds to the step
  int page_tokens = 16;
  std::optional<KvType> kv_dtype = {};  // default: bf16
};

// Needs of `path`, a model's folder or GGUF file, the configuration alone. Errors as Model::Load's.
absl::StatusOr<std::unique_ptr<Model>> LoadReplayModel(const std::filesystem::path& path, const ReplayOptions& options);

}  // namespace baton
