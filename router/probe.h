// SPDX-License-Identifier: Apache-2.0
// Proves that a pair of workers can serve: a tiny request of the router's own, through the same code as a client's.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "router/placer.h"
#include "text/assets/model_assets.h"

namespace baton::router {

// Two prompt tokens, two output tokens: the second one comes from the decode worker, so pages and sequence have really
// changed hands. Calls `done` once, from a thread of gRPC's or before it returns.
void ProbePair(const Placement& placement, std::shared_ptr<const ModelAssets> assets, absl::Duration timeout,
               std::function<void(absl::Status)> done);

}  // namespace baton::router
