// Weights as the matmul kernels read them, and the conversions between dtypes that the backend does outside of kernels.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "engine/kernels/backend.h"
#include "engine/kernels/cpu/thread_pool.h"
#include "engine/kv/host_memory.h"
#include "engine/types.h"

namespace baton::cpu {

// out[i * out_stride] = the value `count` apart values of `dtype` have at in + i * in_stride elements. Exact; `in` need
// not be aligned.
void Widen(const std::byte* in, size_t in_stride, DType dtype, size_t count, float* out);

// Outputs stand side by side in panels of `panel_outputs`, the last one filled up with zeros:
//   [panel][input][output of the panel]
// in the weights' dtype. A panel is read front to back, whole vectors at a time.
class PackedMatrix final : public Matrix {
 public:
  // `weights` below each other, all of the same cols; of different dtypes they become F32. INVALID_ARGUMENT when shapes
  // do not fit, RESOURCE_EXHAUSTED names the bytes.
  static absl::StatusOr<std::unique_ptr<PackedMatrix>> Create(std::span<const TensorView> weights, int panel_outputs,
                                                              ThreadPool& threads);

  int outputs() const override { return outputs_; }
  int inputs() const override { return inputs_; }
  size_t bytes() const override { return memory_.bytes(); }
  DType dtype() const { return dtype_; }
  int panels() const { return (outputs_ + panel_outputs_ - 1) / panel_outputs_; }
  const std::byte* data() const { return static_cast<const std::byte*>(memory_.data()); }

  // The weights of one output, widened: inputs() floats.
  void ReadOutput(int output, float* row) const;

 private:
  PackedMatrix(int outputs, int inputs, int panel_outputs, DType dtype, HostMemory memory);
  size_t panel_bytes() const { return size_t(inputs_) * panel_outputs_ * SizeOf(dtype_); }
  void PackPanel(std::span<const TensorView> weights, int panel);

  const int outputs_;
  const int inputs_;
  const int panel_outputs_;
  const DType dtype_;
  const HostMemory memory_;
};

}  // namespace baton::cpu
