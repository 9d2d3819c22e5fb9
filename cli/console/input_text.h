// SPDX-License-Identifier: Apache-2.0
// Text that a user gives on the standard input in place of a flag's value.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "cli/console/console.h"

namespace baton {

// Replaces the value "-" of `flag` by the whole standard input, final newline included. Leaves other values alone.
// INVALID_ARGUMENT when the input is empty or over 16 MiB; CANCELLED when interrupted; otherwise as the system says.
absl::Status TakeInput(const Console& console, const char* flag, std::optional<std::string>* value);

}  // namespace baton
