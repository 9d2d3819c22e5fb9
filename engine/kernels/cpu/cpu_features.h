// Which kernel families this CPU can run.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "engine/kernels/cpu/kernel_table.h"

namespace baton::cpu {

// `name` is "scalar", "avx2", "avx512" or "auto", the best there is. INVALID_ARGUMENT for another name,
// FAILED_PRECONDITION when this CPU (or the system, which must save the registers) lacks the instructions.
absl::StatusOr<const KernelTable*> FindKernels(std::string_view name);

}  // namespace baton::cpu
