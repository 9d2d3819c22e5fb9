// A process's /metrics as an operator's Prometheus sees it.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace baton::testing {

class MetricsPage {
 public:
  // GET http://127.0.0.1:<port>/metrics.
  static absl::StatusOr<MetricsPage> Fetch(int port, absl::Duration timeout = absl::Seconds(10));
  static MetricsPage Parse(const std::string& text);

  // The sum over all series of `name` that have every one of `labels`; 0 when there is none.
  double Sum(const std::string& name, const std::map<std::string, std::string>& labels = {}) const;
  bool Has(const std::string& name) const;

 private:
  std::multimap<std::string, std::pair<std::string, double>> series_;  // name -> (labels as written, value)
};

}  // namespace baton::testing
