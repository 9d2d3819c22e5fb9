// SPDX-License-Identifier: Apache-2.0
// What a process tells `baton doctor` of itself.
#pragma once

#include "baton/v1/inference.pb.h"

namespace baton {

// `threads`: compute threads; 0 for a process without any.
v1::ProcessFacts ReadProcessFacts(int threads);

}  // namespace baton
