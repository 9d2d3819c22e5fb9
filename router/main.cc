// SPDX-License-Identifier: Apache-2.0
// baton-router: takes requests from clients and places them on pairs of workers.
#include <algorithm>
#include <cstdio>

#include "absl/time/clock.h"
#include "common/log.h"
#include "common/shutdown.h"
#include "common/status_macros.h"
#include "common/steady_time.h"
#include "router/options.h"
#include "router/router.h"

namespace baton::router {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(100);

void WaitForSignal(const Router& router, const RouterOptions& options, ShutdownSignal& signal) {
  bool announced = false;
  while (!signal.Wait(kPoll)) {
    if (announced || !router.ready()) continue;
    announced = true;
    if (LogsAsJson()) continue;  // the log has a line of its own
    std::printf("baton-router: ready, serving at %s\n", options.listen.c_str());
    std::fflush(stdout);
  }
}

// Returns false if a second signal came before the end of the delay.
bool LetClientsLeave(Router& router, absl::Duration delay, ShutdownSignal& signal) {
  if (delay == absl::ZeroDuration()) return true;
  router.AnnounceDrain();
  const SteadyTime end = SteadyTime::Now() + delay;
  for (SteadyTime now = SteadyTime::Now(); now < end; now = SteadyTime::Now()) {
    absl::SleepFor(std::min(kPoll, end - now));
    if (signal.Again()) return false;
  }
  return true;
}

// Returns false if a second signal or the timeout came before the end of the running requests.
bool FinishRequests(Router& router, absl::Duration timeout, ShutdownSignal& signal) {
  router.StartDraining();
  const SteadyTime deadline = SteadyTime::Now() + timeout;
  while (!router.WaitDrained(std::min(deadline, SteadyTime::Now() + kPoll))) {
    if (SteadyTime::Now() >= deadline || signal.Again()) return false;
  }
  return true;
}

absl::Status Run(const RouterOptions& options) {
  ShutdownSignal signal;
  BATON_RETURN_IF_ERROR(InitLogging(options.log, options.router_id));
  BATON_RETURN_IF_ERROR(CheckOptions(options));
  BATON_ASSIGN_OR_RETURN(const std::unique_ptr<Router> router, Router::Start(options));
  Log(LogLevel::kInfo, "router.listening", {{"port", router->port()}, {"metrics_port", router->metrics_port()}});
  WaitForSignal(*router, options, signal);
  const bool drained =
      LetClientsLeave(*router, options.drain_delay, signal) && FinishRequests(*router, options.drain_timeout, signal);
  if (!drained) Log(LogLevel::kWarning, "router.drain_cut_short");
  router->Shutdown();
  Log(LogLevel::kInfo, "router.stopped");
  return absl::OkStatus();
}

}  // namespace
}  // namespace baton::router

int main(int argc, char** argv) {
  baton::router::RouterOptions options;
  baton::OptionSet set("baton-router",
                       "Takes requests from clients and places them on pairs of prefill and decode workers.");
  DescribeOptions(set, options);
  return set.RunProgram(argc, argv, [&] { return baton::router::Run(options); });
}
