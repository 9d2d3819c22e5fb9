// SPDX-License-Identifier: Apache-2.0
// The facts of a process and its machine that `baton doctor` looks at.
#pragma once

#include "baton/v1/inference.pb.h"

namespace baton {

// `threads`: compute threads; 0 for a process without any.
v1::ProcessFacts ReadProcessFacts(int threads);

}  // namespace baton
