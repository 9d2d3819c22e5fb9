// SPDX-License-Identifier: Apache-2.0
// Weights in the panel layout of the matmul kernels, and conversions that the backend does outside of kernels.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/kernels/backend.h"
#include "engine/kernels/cpu/panel_format.h"
#include "engine/kernels/cpu/thread_pool.h"
#include "engine/kv/host_memory.h"
#include "engine/types.h"

namespace baton::cpu {

// out[i] = the value i * in_stride elements after `in`, exactly. `type` is a float type; `in` need not be aligned.
void Widen(const std::byte* in, size_t in_stride, TensorType type, size_t count, float* out);

// Panel layout that a kernel family needs.
struct PanelOptions {
  int outputs = 0;  // per panel
  PanelFormat bf16_format = PanelFormat::kBF16;
};

// Immutable after Create; owns its memory. A section holds consecutive outputs in one panel format (panel_format.h);
// zeros fill its last panel. Stacked weights of different formats become separate sections.
class PackedMatrix final : public Matrix {
 public:
  struct Section {
    PanelFormat format;
    int first_output;
    int outputs;
    int panels;
    size_t panel_bytes;
    const std::byte* data;
  };

  // Packs `weights`, stacked by rows, with equal cols. INVALID_ARGUMENT if shapes do not fit; RESOURCE_EXHAUSTED names
  // the bytes.
  static absl::StatusOr<std::unique_ptr<PackedMatrix>> Create(std::span<const TensorView> weights,
                                                              const PanelOptions& options, ThreadPool& threads);

  int outputs() const override { return outputs_; }
  int inputs() const override { return inputs_; }
  size_t bytes() const override { return memory_.bytes(); }
  std::span<const Section> sections() const { return sections_; }
  std::span<const std::byte> data() const { return {memory_.data(), memory_.bytes()}; }

  // Writes the weights of one output as inputs() floats.
  void ReadOutput(int output, float* row) const;

 private:
  PackedMatrix(int inputs, int panel_outputs) : inputs_(inputs), panel_outputs_(panel_outputs) {}

  int outputs_ = 0;
  const int inputs_;
  const int panel_outputs_;
  std::vector<Section> sections_;
  Mapping memory_;
};

}  // namespace baton::cpu
