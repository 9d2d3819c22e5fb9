// SPDX-License-Identifier: Apache-2.0
// Exponential backoff: the delay doubles with each failure in a row.
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace baton::router {

struct Backoff {
  absl::Duration first;
  absl::Duration most;

  // `failures` counts from 1.
  absl::Duration After(int failures) const { return std::min(first * (1 << std::clamp(failures - 1, 0, 20)), most); }
};

}  // namespace baton::router
