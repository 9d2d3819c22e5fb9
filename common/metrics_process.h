// SPDX-License-Identifier: Apache-2.0
// The usual metrics of any process (process_*), and the build of Baton (baton_build_info).
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <vector>

namespace baton {

// Returns baton_build_info: the project's version, git's revision when the build was configured (or "unknown"), and the
// compiler.
prometheus::MetricFamily BuildInfo();

// Reads the kernel's figures anew at every Collect; leaves out those that cannot be read. Thread-safe.
class ProcessMetrics final : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace baton
