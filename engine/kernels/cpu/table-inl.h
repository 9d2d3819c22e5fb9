// The table of a family from its vector type.
#pragma once

#include "engine/kernels/cpu/attention-inl.h"
#include "engine/kernels/cpu/elementwise-inl.h"
#include "engine/kernels/cpu/kernel_table.h"
#include "engine/kernels/cpu/matmul-inl.h"

namespace baton::cpu {

template <typename V>
constexpr KernelTable MakeTable(const char* family) {
  return {
      .family = family,
      .panel_outputs = MatMulShape<V>::kPanel,
      .matmul_scratch = MatMulShape<V>::kScratch,
      .matmul = {MatMul<V, float>, MatMul<V, F16>, MatMul<V, BF16>},
      .attention_scratch = AttentionScratchSize<V>,
      .attention = {Attention<V, float>, Attention<V, F16>, Attention<V, BF16>},
      .round = {Round<V, float>, Round<V, F16>, Round<V, BF16>},
      .rms_norm = RmsNorm<V>,
      .add = Add<V>,
      .silu_mul = SiluMul<V>,
      .rope = Rope<V>,
  };
}

}  // namespace baton::cpu
