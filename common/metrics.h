// SPDX-License-Identifier: Apache-2.0
// A process's metrics: a registry, and a page that serves it at http://<listen>/metrics together with those of every
// process (metrics_process.h).
//
// Thread-safe. Families and metrics that the registry hands out live as long as the MetricsServer.
#pragma once

#include <prometheus/registry.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/metrics_http.h"
#include "common/metrics_process.h"

namespace baton {

// The names of the metrics on a page: Baton's, vLLM's (metrics_vllm.h), or both. `process_*` and
// `baton_build_info` are on each page.
enum class MetricsNames { kBaton, kVllm, kBoth };
inline const std::vector<std::string> kMetricsNames = {"baton", "vllm", "both"};  // as in options, in this order
MetricsNames MetricsNamesFrom(std::string_view name);                             // one of kMetricsNames

class MetricsServer {
 public:
  // `listen` is host:port; port 0 for any. UNAVAILABLE, naming the address, when it cannot be bound. An empty address:
  // metrics are collected but not served.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(const std::string& listen,
                                                              MetricsNames names = MetricsNames::kBaton);

  prometheus::Registry& registry() { return registry_; }
  int port() const { return http_ == nullptr ? 0 : http_->port(); }  // 0 when not served

  // In Prometheus' text format.
  std::string Page() const;

 private:
  explicit MetricsServer(MetricsNames names) : names_(names) {}

  const MetricsNames names_;
  prometheus::Registry registry_;
  const ProcessMetrics process_;
  std::unique_ptr<MetricsHttp> http_;  // last: its thread reads the others
};

}  // namespace baton
