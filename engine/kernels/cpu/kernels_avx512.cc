// SPDX-License-Identifier: Apache-2.0
// AVX-512 F, BW, VL and DQ, without VNNI and BF16.

#include "engine/kernels/cpu/avx512_vec-inl.h"
#include "engine/kernels/cpu/table-inl.h"

namespace baton::cpu {

namespace avx512 {

struct Family {
  static constexpr bool kVnni = false;
  static constexpr bool kBf16 = false;
};

}  // namespace avx512

constinit const KernelTable kAvx512Kernels = MakeTable<Vec512<avx512::Family>>("avx512");

}  // namespace baton::cpu
