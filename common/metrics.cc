#include "common/metrics.h"

#include <netdb.h>
#include <prometheus/exposer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "common/address.h"
#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {
namespace {

// A connection that is begun and dropped.
void Knock(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), Concat(port).c_str(), &hints, &list) != 0) return;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(list, &freeaddrinfo);
  const int fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  [[maybe_unused]] const int begun = connect(fd, list->ai_addr, list->ai_addrlen);
  close(fd);
}

}  // namespace

prometheus::Histogram::BucketBoundaries LatencyBuckets() {
  prometheus::Histogram::BucketBoundaries buckets = {0.0001, 0.0002, 0.0005};
  for (const double decade : {0.001, 0.01, 0.1, 1.0, 10.0}) {
    for (const double step : {1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0}) buckets.push_back(decade * step);
  }
  for (const double seconds : {100.0, 150.0, 300.0, 600.0}) buckets.push_back(seconds);
  return buckets;
}

MetricsServer::MetricsServer() : registry_(std::make_shared<prometheus::Registry>()) {}

MetricsServer::~MetricsServer() {
  if (exposer_ == nullptr) return;
  // The server looks whether it is to stop when a connection comes, and otherwise every two seconds.
  std::atomic<bool> stopped = false;
  std::thread knocking([&] {
    while (!stopped) {
      Knock(host_, port_);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  exposer_.reset();
  stopped = true;
  knocking.join();
}

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& listen) {
  std::unique_ptr<MetricsServer> server(new MetricsServer);
  if (listen.empty()) return server;
  BATON_RETURN_IF_ERROR(CheckCanListen(listen));
  try {
    server->exposer_ = std::make_unique<prometheus::Exposer>(listen);
    server->exposer_->RegisterCollectable(server->registry_);
    const std::vector<int> ports = server->exposer_->GetListeningPorts();
    if (!ports.empty()) server->port_ = ports.front();
    BATON_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(listen));
    server->host_ = address.host;
  } catch (const std::exception& error) {
    return absl::UnavailableError(Concat("cannot serve metrics on ", listen, ": ", error.what()));
  }
  return server;
}

}  // namespace baton
