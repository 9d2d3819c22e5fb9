// SPDX-License-Identifier: Apache-2.0
// A step profile says how long the steps of a model take on a machine: the measured steps, and the cost fitted to them.
// `baton bench engine --profile FILE` writes a profile. Workers that replay, and `baton plan`, read the file.
//
// The file is JSON. A file that is malformed or of another version is refused by field. Plain values.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/step_cost.h"

namespace baton {

struct StepProfile {
  // A kind of step: a chunk of one prompt beside sequences that decode, each after `context_tokens` tokens.
  struct Step {
    int prompt_tokens = 0;
    int decode_rows = 0;
    int context_tokens = 0;
    double seconds = 0;  // positive

    StepWork work() const;
  };

  std::string model;  // for people
  std::string numerics_id;
  int threads = 0;
  int layers = 0;
  int page_tokens = 0;
  int kv_token_bytes = 0;  // in all layers
  int max_context_tokens = 0;
  StepCost cost;
  std::vector<Step> steps;
};

// Returns how far the fitted time of the step is from the measured time, as a share of the measured time.
double RelativeError(const StepProfile& profile, const StepProfile::Step& step);

std::string ToJson(const StepProfile& profile);
// INVALID_ARGUMENT names `origin`, the field, and what was expected.
absl::StatusOr<StepProfile> ParseStepProfile(std::string_view json, std::string_view origin);

absl::Status WriteStepProfile(const StepProfile& profile, const std::filesystem::path& path);
absl::StatusOr<StepProfile> ReadStepProfile(const std::filesystem::path& path);

}  // namespace baton
