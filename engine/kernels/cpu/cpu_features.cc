// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/cpu/cpu_features.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace baton::cpu {
namespace {

struct Family {
  std::string_view name;
  const KernelTable* table;
  bool supported;
  const char* needs;
};

}  // namespace

absl::StatusOr<const KernelTable*> FindKernels(std::string_view name) {
  // __builtin_cpu_supports checks CPUID and which registers the operating system saves.
#if defined(__x86_64__)
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("fma");
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
#endif
  // Best first.
  const Family families[] = {
#if defined(__x86_64__)
      {"avx512-bf16", &kAvx512Bf16Kernels, vnni && __builtin_cpu_supports("avx512bf16"),
       "AVX-512 F, BW, VL, DQ, VNNI and BF16"},
      {"avx512-vnni", &kAvx512VnniKernels, vnni, "AVX-512 F, BW, VL, DQ and VNNI"},
      {"avx512", &kAvx512Kernels, avx512, "AVX-512 F, BW, VL and DQ"},
      {"avx2", &kAvx2Kernels,
       __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"),
       "AVX2, FMA and F16C"},
#endif
      {"scalar", &kScalarKernels, true, ""},
  };
  for (const Family& family : families) {
    if (name == "auto" && family.supported) return family.table;
    if (name != family.name) continue;
    if (family.supported) return family.table;
    return absl::FailedPreconditionError(
        absl::StrCat("kernels \"", std::string(name), "\" need ", family.needs, ", which this CPU does not have"));
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown kernels \"", std::string(name),
                                                 "\": expected auto, scalar, avx2, avx512, "
                                                 "avx512-vnni or avx512-bf16"));
}

}  // namespace baton::cpu
