// SPDX-License-Identifier: Apache-2.0
// Builds the KernelTable of a family from its vector type.
#pragma once

#include "engine/kernels/cpu/attention-inl.h"
#include "engine/kernels/cpu/elementwise-inl.h"
#include "engine/kernels/cpu/kernel_table.h"
#include "engine/kernels/cpu/kv_rounding-inl.h"
#include "engine/kernels/cpu/limits-inl.h"
#include "engine/kernels/cpu/matmul-inl.h"
#include "engine/kernels/cpu/pair_matmul-inl.h"
#include "engine/kernels/cpu/quant_matmul-inl.h"

namespace baton::cpu {

template <typename V, PanelFormat kFormat>
constexpr MatMulKernel QuantKernel() {
  return {QuantMatMul<V, kFormat>, V::kQuantRows, QuantTile<V, kFormat>::RowBytes, QuantizeTile<V, kFormat>};
}

template <typename V>
constexpr MatMulKernel PairKernel() {
  if constexpr (V::kHasPairs) {
    return {PairMatMul<V>, V::kPairRows, PairRowBytes<V>, RoundTileToPairs<V>};
  } else {
    return {};
  }
}

template <typename V>
constexpr double (*PairPeak())(int, float*) {
  if constexpr (V::kHasPairs) {
    return PeakPairs<V>;
  } else {
    return nullptr;
  }
}

template <typename V>
constexpr KernelTable MakeTable(const char* family) {
  return {
      .family = family,
      .panel_outputs = MatMulShape<V>::kPanel,
      .bf16_format = V::kHasPairs ? PanelFormat::kBF16Pairs : PanelFormat::kBF16,
      .matmul_scratch = MatMulShape<V>::kScratch,
      .matmul = {{MatMul<V, float>},
                 {MatMul<V, F16>},
                 {MatMul<V, BF16>},
                 PairKernel<V>(),
                 QuantKernel<V, PanelFormat::kInt8>(),
                 QuantKernel<V, PanelFormat::kInt8Fine>(),
                 QuantKernel<V, PanelFormat::kInt8Min>(),
                 QuantKernel<V, PanelFormat::kInt4>(),
                 QuantKernel<V, PanelFormat::kInt4Min>()},
      .attention_scratch = AttentionScratchSize<V>,
      .attention = {Attention<V, float>, Attention<V, F16>, Attention<V, BF16>, Attention<V, int8_t>,
                    Attention<V, E4M3>},
      .round_head = {RoundHead<V, float>, RoundHead<V, F16>, RoundHead<V, BF16>, RoundHead<V, int8_t>,
                     RoundHead<V, E4M3>},
      .rms_norm = RmsNorm<V>,
      .add = Add<V>,
      .silu_mul = SiluMul<V>,
      .rope = Rope<V>,
      .limit_floats = V::kLanes,
      .peak_floats = PeakFloats<V>,
      .peak_ints = PeakInts<V>,
      .peak_pairs = PairPeak<V>(),
      .read_through = ReadThrough<V>,
  };
}

}  // namespace baton::cpu
