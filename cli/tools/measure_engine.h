// Measures the engine alone, without processes or network: prefill of one prompt, and decoding of several sequences at
// once.
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
  int prompt_tokens = 512;  // of the prefill measurement
  std::vector<int> sequences = {1, 8, 32};
  int context_tokens = 128;  // of each sequence before it decodes
  int output_tokens = 64;    // of each sequence
  int repeats = 3;           // of each measurement
};

// What one kind of step took; times are of a step, the mean over all that were measured.
struct EngineMeasurement {
  bool prefill = false;
  int sequences = 1;
  int context_tokens = 0;        // at the first of the steps
  double tokens_per_second = 0;  // the median of the repeats
  double step_seconds = 0;
  WorkTimes work;
  absl::Duration sampling;
  double read_bytes_per_second = 0;  // weights, and K and V of all sequences
  double operations_per_second = 0;  // multiplications and additions of the products with weights
};

struct EngineReport {
  std::string kernels;
  std::string numerics_id;
  TensorType weight_type = TensorType::kF32;  // of the products
  double load_seconds = 0;
  size_t weight_bytes = 0;
  MachineLimits limits;
  std::vector<EngineMeasurement> measurements;
};

// `interrupted` is asked between steps: CANCELLED when it says so. Other errors are those of loading the model.
absl::StatusOr<EngineReport> BenchEngine(const EngineBenchOptions& options, const std::function<bool()>& interrupted);

}  // namespace baton
