// SPDX-License-Identifier: Apache-2.0
// Measures the engine alone, without other processes or a network: prefill of one prompt, and decode of several
// sequences at once.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/kernels/backend.h"
#include "engine/model/model.h"

namespace baton {

struct EngineBenchOptions {
  std::filesystem::path model;
  ModelOptions engine;
  int prompt_tokens = 512;  // in the prefill measurement
  std::vector<int> sequences = {1, 8, 32};
  int context_tokens = 128;  // of each sequence before it decodes
  int output_tokens = 64;    // of each sequence
  int repeats = 3;           // of each measurement
};

// The measurement of one kind of step. Times are means per step.
struct EngineMeasurement {
  bool prefill = false;
  int sequences = 1;
  int context_tokens = 0;        // at the first step
  double tokens_per_second = 0;  // the median of the repeats
  double step_seconds = 0;
  WorkTimes work;
  double read_bytes_per_second = 0;  // weights, and the KV of all sequences
  double operations_per_second = 0;  // multiplications and additions with weights
};

struct EngineReport {
  std::string kernels;
  std::string numerics_id;
  TensorType weight_type = TensorType::kF32;  // of the matrices
  double load_seconds = 0;
  size_t weight_bytes = 0;
  MachineLimits limits;
  std::vector<EngineMeasurement> measurements;
};

// Asks `interrupted` between steps: CANCELLED when it returns true. Other errors come from loading the model.
absl::StatusOr<EngineReport> BenchEngine(const EngineBenchOptions& options, const std::function<bool()>& interrupted);

}  // namespace baton
