// SPDX-License-Identifier: Apache-2.0
// A model that computes nothing, for load tests without weights and for tests of everything around a model.
//
// A step takes a configured time. The next token is a function of all tokens before. Tokens before the step are known
// only from the KV pages: per token and layer, the model writes an 8-byte mark into the token's place in the block. A
// mark is a function of the token and of the mark before.
//
// Each step reads the marks of all earlier positions, each from one layer. The layer changes from step to step. So a
// page that is missing, late or of another sequence changes the tokens. If the layers of the last position differ,
// Forward fails with INTERNAL.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/model/model.h"

namespace baton {

struct ReplayOptions {
  absl::Duration step = absl::Milliseconds(10);  // time of every step
  double prefill_tokens_per_second = 10000;      // new tokens after a sequence's first add to the step's time
  int page_tokens = 16;
  std::optional<KvType> kv_dtype = {};  // default: bf16
};

// Loads only the configuration of `path`, a model folder or GGUF file. Errors as Model::Load.
absl::StatusOr<std::unique_ptr<Model>> LoadReplayModel(const std::filesystem::path& path, const ReplayOptions& options);

}  // namespace baton
