// A running router: registry, services and server, put together and taken apart in the right order.
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
  // `options` have passed CheckOptions. UNAVAILABLE names an address that cannot be bound. Workers need not run yet.
  static absl::StatusOr<std::unique_ptr<Router>> Start(const RouterOptions& options);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  int port() const;
  int metrics_port() const;
  // A pair of workers has passed its probe and is there: what health checks answer.
  bool ready() const { return ready_; }

  // New requests are refused from now on.
  void StartDraining();
  // Waits for the running ones; false if some still run at `deadline`.
  bool WaitDrained(SteadyTime deadline);
  // Ends what still runs.
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
