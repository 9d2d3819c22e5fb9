// SPDX-License-Identifier: Apache-2.0
// A running router. Owns registry, services and server, and starts and ends them in the right order.
//
// Thread-safe after Start. Drain and Shutdown belong to the owner's thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "common/steady_time.h"
#include "router/options.h"

namespace baton::router {

class Router {
 public:
  // `options` must pass CheckOptions. UNAVAILABLE names an address that cannot be bound. Workers need not run yet.
  static absl::StatusOr<std::unique_ptr<Router>> Start(const RouterOptions& options);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  int port() const;
  int metrics_port() const;
  // Returns whether a ready pair of workers exists: the answer of health checks.
  bool ready() const { return ready_; }

  // Health checks fail from now on, so that clients and load balancers choose another router.
  void AnnounceDrain();
  // Refuses new requests and connections from now on, and asks clients to connect elsewhere.
  void StartDraining();
  // Waits for running requests; false if a request still runs at `deadline`.
  bool WaitDrained(SteadyTime deadline);
  // Ends running requests, then services and server.
  void Shutdown();

 private:
  struct Parts;

  Router();
  void OnRegistryChange();

  std::unique_ptr<Parts> parts_;
  std::atomic<bool> ready_ = false;
  std::atomic<bool> draining_ = false;
};

}  // namespace baton::router
