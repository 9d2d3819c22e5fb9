// SPDX-License-Identifier: Apache-2.0
// Selects the kernel family for this CPU.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "engine/kernels/cpu/kernel_table.h"

namespace baton::cpu {

// `name` is a family, or "auto" for the best family that this CPU supports. INVALID_ARGUMENT for an unknown name.
// FAILED_PRECONDITION if the CPU lacks the instructions or the operating system does not save the registers.
absl::StatusOr<const KernelTable*> FindKernels(std::string_view name);

}  // namespace baton::cpu
