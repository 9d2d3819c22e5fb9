// Serves a process's metrics at http://<listen>/metrics.
//
// The registry is thread-safe; families and metrics it hands out live as long as the server.
#pragma once

#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace prometheus {
class Exposer;
}

namespace baton {

// Buckets, in seconds, that resolve p95 at 5 ms and at 60 s alike.
prometheus::Histogram::BucketBoundaries LatencyBuckets();

class MetricsServer {
 public:
  // `listen` is host:port; port 0 for any. UNAVAILABLE, naming the address, when it cannot be bound. An empty address:
  // metrics are collected but not served.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(const std::string& listen);
  ~MetricsServer();

  prometheus::Registry& registry() { return *registry_; }
  int port() const { return port_; }  // 0 when not served

 private:
  MetricsServer();

  std::shared_ptr<prometheus::Registry> registry_;
  std::unique_ptr<prometheus::Exposer> exposer_;
  std::string host_;
  int port_ = 0;
};

}  // namespace baton
