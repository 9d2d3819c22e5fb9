// SPDX-License-Identifier: Apache-2.0
// A process's /metrics as an operator's Prometheus sees it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace baton::testing {

struct MetricsSeries {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

class MetricsPage {
 public:
  // GET http://<host>:<port>/metrics; `host` is an IPv4 address.
  static absl::StatusOr<MetricsPage> Fetch(int port, const std::string& host = "127.0.0.1",
                                           absl::Duration timeout = absl::Seconds(10));
  static MetricsPage Parse(const std::string& text);

  // The sum over all series of `name` that have every one of `labels`; 0 when there is none.
  double Sum(const std::string& name, const std::map<std::string, std::string>& labels = {}) const;
  const std::vector<MetricsSeries>& series() const { return series_; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::vector<MetricsSeries> series_;
};

}  // namespace baton::testing
