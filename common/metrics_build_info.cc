// SPDX-License-Identifier: Apache-2.0
// The only file that knows version and revision: a new commit compiles nothing else.
#include "common/metrics_process.h"

namespace baton {

prometheus::MetricFamily BuildInfo() {
  prometheus::ClientMetric metric;
  metric.gauge.value = 1;
  metric.label = {{"version", BATON_VERSION}, {"revision", BATON_REVISION}, {"compiler", BATON_COMPILER}};
  return {"baton_build_info",
          "Always 1. The labels say which build of Baton this process runs",
          prometheus::MetricType::Gauge,
          {metric}};
}

}  // namespace baton
