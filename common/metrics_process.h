// SPDX-License-Identifier: Apache-2.0
// The usual metrics of any process (process_*), and the build of Baton (baton_build_info).
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <string_view>
#include <vector>

namespace baton {

struct BuildInfo {
  std::string_view version;   // the project's
  std::string_view revision;  // git's when the build was configured, or "unknown"
  std::string_view compiler;
};

BuildInfo ThisBuild();

// Reads the kernel's figures anew at every Collect; leaves out those that cannot be read. Thread-safe.
class ProcessMetrics final : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace baton
