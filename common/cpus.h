// SPDX-License-Identifier: Apache-2.0
// The CPUs of this process.
#pragma once

#include <string>

namespace baton {

// Returns how many CPUs' time this process gets, at least 1: the CPUs that the thread may run on, or the cgroup's
// quota, rounded up, if that is less. Threads started later inherit both. `root` is for tests.
int UsableCpus(const std::string& root = "");

}  // namespace baton
