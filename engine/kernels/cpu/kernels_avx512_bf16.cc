// SPDX-License-Identifier: Apache-2.0
// AVX-512 with VNNI and BF16: one instruction adds two products of BF16 numbers to each float.

#include "engine/kernels/cpu/avx512_vec-inl.h"
#include "engine/kernels/cpu/table-inl.h"

namespace baton::cpu {

namespace avx512_bf16 {

struct Family {
  static constexpr bool kVnni = true;
  static constexpr bool kBf16 = true;
};

}  // namespace avx512_bf16

constinit const KernelTable kAvx512Bf16Kernels = MakeTable<Vec512<avx512_bf16::Family>>("avx512-bf16");

}  // namespace baton::cpu
