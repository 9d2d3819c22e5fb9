// SPDX-License-Identifier: Apache-2.0
// The one place where gRPC servers and channels are made, so that limits, keepalive and (later) TLS are the same
// everywhere.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "common/steady_time.h"

namespace baton {

class ReflectionService;

// Codes are the same on both sides. A message too long for HTTP/2 trailers is cut.
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

// The deadline, on gRPC's monotonic clock, of what may take `timeout` from now. A year stands for an infinite timeout.
gpr_timespec GrpcDeadline(absl::Duration timeout);

struct GrpcServerOptions {
  std::string listen;  // host:port; port 0 for any
  int max_message_bytes = 16 << 20;
  int max_concurrent_streams = 4096;  // per connection
  // A client whose machine or network went away without a word is noticed after about this long, and its calls are
  // cancelled. At least 3 s.
  absl::Duration peer_timeout = absl::Seconds(30);
  // Full names under which health may be asked for, besides the empty one.
  std::vector<std::string> health_names = {};
};

// A started server with the services given, health (grpc.health.v1, serving at first) and reflection (v1 and v1alpha).
// Shuts down in its destructor, within a second for calls that do not end by themselves.
class GrpcServer {
 public:
  // UNAVAILABLE, naming the address, when it cannot be bound (a port in use says so). `services` must outlive it.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(const GrpcServerOptions& options,
                                                           const std::vector<grpc::Service*>& services);
  ~GrpcServer();

  int port() const { return port_; }
  // Sets the answer of health checks, for the empty service name and each of health_names. Watchers hear of changes
  // only. Thread-safe; the last call wins.
  void SetServing(bool serving) ABSL_LOCKS_EXCLUDED(health_mutex_);
  // Takes no more connections, and asks clients to connect elsewhere (GOAWAY). Running calls go on until Shutdown. A
  // call that crosses the request on the wire ends with CANCELLED. Neither this nor Shutdown from two threads.
  void StopListening();
  // Waits for running calls until `deadline`, then cancels what is left. New calls are refused at once. Later calls do
  // nothing.
  void Shutdown(SteadyTime deadline);

 private:
  GrpcServer();

  const std::unique_ptr<ReflectionService> reflection_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  std::vector<std::string> health_names_;
  Mutex health_mutex_;
  std::optional<bool> serving_ ABSL_GUARDED_BY(health_mutex_);  // as gRPC's health service was told; none: not yet
  bool shut_down_ = false;
  std::thread stopping_;            // of StopListening; waits for the end of all calls
  absl::Notification calls_ended_;  // by `stopping_`
};

struct ChannelOptions {
  int max_message_bytes = 16 << 20;
  // While a call runs, keepalive finds a silent server after about this long (at least 3 s). Gentle enough not to draw
  // GOAWAY.
  absl::Duration peer_timeout = absl::Seconds(30);
  const char* service_config = nullptr;  // gRPC's JSON; null: none
};

// A channel to one of our servers, connected on first use. Reconnects back off up to a second, and ask DNS anew. Proxy
// variables of the environment are ignored.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& target, const ChannelOptions& options = {});

}  // namespace baton
