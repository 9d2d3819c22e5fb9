// SPDX-License-Identifier: Apache-2.0
// Measures how long the steps of a model take, by batch, chunk and context, and fits a StepCost to the times.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/formats/step_profile.h"
#include "engine/model/model.h"

namespace baton {

// Every combination is measured, but for the step without a sequence and a chunk.
struct ProfileOptions {
  std::filesystem::path model;
  ModelOptions engine;
  std::vector<int> sequences = {1, 2, 4, 8, 16};  // that decode in a step, besides none
  std::vector<int> chunks = {32, 128, 512};       // tokens of a prompt in a step, besides none
  // Tokens before the step, of the prompt and of each sequence. Empty: 64, and 1024 or what the model allows.
  std::vector<int> contexts = {};
  int repeats = 3;
};

// Asks `interrupted` between steps: CANCELLED when it returns true. RESOURCE_EXHAUSTED: the KV of the largest step does
// not fit the memory. Other errors come from loading the model. Blocks for all steps.
absl::StatusOr<StepProfile> MeasureProfile(ProfileOptions options, const std::function<bool()>& interrupted);

}  // namespace baton
