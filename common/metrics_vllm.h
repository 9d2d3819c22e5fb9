// SPDX-License-Identifier: Apache-2.0
// A process's metrics under the names that vLLM gives to the same facts, for dashboards and autoscalers that know vLLM.
// docs/metrics.md, "Names elsewhere", has the table.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

namespace baton {

// Returns a family for each vLLM name of which `families`, Baton's own, have the facts. The label `model` becomes
// `model_name`. Each name comes from routers only or from workers only, so that sums over all processes do not mix the
// two. Prefix cache metrics of decode workers have no counterpart: a prompt's prefill worker counts its tokens.
std::vector<prometheus::MetricFamily> VllmFamilies(const std::vector<prometheus::MetricFamily>& families);

}  // namespace baton
