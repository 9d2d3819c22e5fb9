// SPDX-License-Identifier: Apache-2.0
// Wraps a Backend and measures the time of each kind of work. Not thread-safe, as any Backend.
#pragma once

#include <memory>

#include "absl/time/time.h"
#include "engine/kernels/backend.h"

namespace baton {

struct WorkTimes {
  absl::Duration products;      // MatMul, including the preparation of activations
  absl::Duration attention;     // BeginStep, which divides the work, and Attention, without the projections around it
  absl::Duration kv;            // head norms and rotary positions of q and k, WriteKv
  absl::Duration element_wise;  // other norms, activation functions, additions, copies
  absl::Duration sampling;
  absl::Duration waiting;  // included in the above: waiting for the last compute thread
};

// Adds to `times`, which must outlive the returned backend. Owns `backend`.
std::unique_ptr<Backend> TimeBackend(std::unique_ptr<Backend> backend, WorkTimes* times);

}  // namespace baton
