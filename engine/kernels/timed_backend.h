// A Backend that measures how long each kind of work of another one takes: where a step's time goes.
#pragma once

#include <memory>

#include "absl/time/time.h"
#include "engine/kernels/backend.h"

namespace baton {

struct WorkTimes {
  absl::Duration products;      // with weights, preparing activations included
  absl::Duration attention;     // without the products before and after it
  absl::Duration kv;            // rounding K and V into pages
  absl::Duration element_wise;  // norms, rotary positions, activation functions, additions, copies
  absl::Duration waiting;       // part of the above: for the last compute thread
};

// `times` is added to; it must outlive the backend.
std::unique_ptr<Backend> TimeBackend(std::unique_ptr<Backend> backend, WorkTimes* times);

}  // namespace baton
