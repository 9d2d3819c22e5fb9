// SPDX-License-Identifier: Apache-2.0
// AVX-512 with VNNI: one instruction adds four products of 8-bit integers to each sum.

#include "engine/kernels/cpu/avx512_vec-inl.h"
#include "engine/kernels/cpu/table-inl.h"

namespace baton::cpu {

namespace avx512_vnni {

struct Family {
  static constexpr bool kVnni = true;
  static constexpr bool kBf16 = false;
};

}  // namespace avx512_vnni

constinit const KernelTable kAvx512VnniKernels = MakeTable<Vec512<avx512_vnni::Family>>("avx512-vnni");

}  // namespace baton::cpu
