// SPDX-License-Identifier: Apache-2.0
// The CPUs of this process.
#pragma once

namespace baton {

// Returns how many CPUs the system lets this thread run on, at least 1. Threads started later inherit them.
int UsableCpus();

}  // namespace baton
