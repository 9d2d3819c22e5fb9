// SPDX-License-Identifier: Apache-2.0
// A model that computes nothing, for load tests without weights and for tests of everything around a model.
//
// A step takes the time that a StepCost gives for its work, and its layers end at even intervals. The next token is a
// function of all tokens before. Tokens before the step are known only from the KV pages: per token and layer, the
// model writes an 8-byte mark into the token's place in the block. A mark is a function of the token and of the mark
// before.
//
// Each step reads the marks of all earlier positions, each from one layer. The layer changes from step to step. So a
// page that is missing, late or of another sequence changes the tokens. If the layers of the last position differ,
// Forward fails with INTERNAL.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "common/steady_time.h"
#include "common/step_cost.h"
#include "engine/model/model.h"

namespace baton {

// Sleeps until `time`, closer than absl::SleepFor: the kernel adds 50 us to a thread's sleeps unless told otherwise.
void SleepUntil(SteadyTime time);

struct ReplayOptions {
  // A sequence with one new token counts as a decoding sequence, other new tokens as a prompt's.
  StepCost cost = {.step = 0.01, .prompt_token = 1e-4};
  int page_tokens = 16;
  std::optional<KvType> kv_dtype = {};  // default: bf16
  std::function<SteadyTime()> now = SteadyTime::Now;
  std::function<void(SteadyTime)> sleep_until = SleepUntil;
};

// Loads only the configuration of `path`, a model folder or GGUF file. Errors as Model::Load.
absl::StatusOr<std::unique_ptr<Model>> LoadReplayModel(const std::filesystem::path& path, const ReplayOptions& options);

}  // namespace baton
