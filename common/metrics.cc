#include "common/metrics.h"

#include <prometheus/exposer.h>

#include <exception>
#include <vector>

#include "common/address.h"
#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {

prometheus::Histogram::BucketBoundaries LatencyBuckets() {
  prometheus::Histogram::BucketBoundaries buckets = {0.0001, 0.0002, 0.0005};
  for (const double decade : {0.001, 0.01, 0.1, 1.0, 10.0}) {
    for (const double step : {1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0}) buckets.push_back(decade * step);
  }
  for (const double seconds : {100.0, 150.0, 300.0, 600.0}) buckets.push_back(seconds);
  return buckets;
}

MetricsServer::MetricsServer() : registry_(std::make_shared<prometheus::Registry>()) {}
MetricsServer::~MetricsServer() = default;

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& listen) {
  std::unique_ptr<MetricsServer> server(new MetricsServer);
  if (listen.empty()) return server;
  BATON_RETURN_IF_ERROR(CheckCanListen(listen));
  try {
    server->exposer_ = std::make_unique<prometheus::Exposer>(listen);
    server->exposer_->RegisterCollectable(server->registry_);
    const std::vector<int> ports = server->exposer_->GetListeningPorts();
    if (!ports.empty()) server->port_ = ports.front();
  } catch (const std::exception& error) {
    return absl::UnavailableError(Concat("cannot serve metrics on ", listen, ": ", error.what()));
  }
  return server;
}

}  // namespace baton
