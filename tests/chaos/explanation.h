// SPDX-License-Identifier: Apache-2.0
// Decides which errors of requests the disturbances of a deployment explain.
//
//   UNAVAILABLE         during the request, its router could reach no pair of workers at some time; or more
//   disturbances
//                       began or ended than the request has attempts
//   RESOURCE_EXHAUSTED  as many requests were in flight as a worker takes; or each reachable decode worker had lost a
//                       peer, whose pages are then in quarantine
//
// A disturbance has effects after its end: losses are noticed late, processes take time to start, and retries wait. A
// disturbance therefore counts for some slack longer. SlackNeeded says how much slack an explanation needs.
//
// Thread-compatible.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/steady_time.h"

namespace baton::testing {

struct Deployment {
  std::vector<std::string> prefill;
  std::vector<std::string> decode;
  bool decode_prefills = false;   // a decode worker also serves alone
  int worker_requests = 0;        // most requests at once on a worker
  int max_attempts = 0;           // failed attempts of a request
  std::string client = "client";  // node that sends the requests
};

struct RequestSpan {
  std::string router;
  SteadyTime start;
  SteadyTime end;
};

class Disturbances {
 public:
  explicit Disturbances(Deployment deployment) : deployment_(std::move(deployment)) {}

  // Begins a disturbance of process `node`, or of the connection of `node` and `other`, which lasts until End.
  void Begin(std::string what, std::string node, std::string other, SteadyTime at);
  void End(const std::string& node, const std::string& other, SteadyTime at);
  void Clear() { all_.clear(); }

  // Returns the least slack with which the request could reach no pair at some time; infinite if no slack suffices.
  absl::Duration SlackNeeded(const RequestSpan& request) const;
  // As SlackNeeded, for pairs whose decode worker saw all of its peers.
  absl::Duration SlackNeededForQuarantine(const RequestSpan& request) const;
  // Returns whether more disturbances began or ended during the request, or `slack` before, than the request has
  // attempts.
  bool ExhaustAttempts(const RequestSpan& request, absl::Duration slack) const;
  // Returns whether at some time of the request as many of `all` were in flight as a worker takes. A request counts for
  // `slack` after its end.
  bool FillQueues(const RequestSpan& request, const std::vector<RequestSpan>& all, absl::Duration slack) const;

  // Returns a line for each disturbance between `from` and `to`, with times since `zero`.
  std::string Story(SteadyTime from, SteadyTime to, SteadyTime zero) const;

 private:
  struct One {
    std::string what;
    std::string node;
    std::string other;  // empty: the process `node` is disturbed
    SteadyTime from;
    SteadyTime to = SteadyTime::InfiniteFuture();

    bool IsOf(const std::string& process) const { return other.empty() && node == process; }
    bool IsBetween(const std::string& a, const std::string& b) const {
      return (node == a && other == b) || (node == b && other == a);
    }
    // Returns how long before `at` the disturbance ended; infinite if the disturbance began later.
    absl::Duration SlackAt(SteadyTime at) const;
  };

  template <typename Matches>
  absl::Duration LeastSlackAt(SteadyTime at, const Matches& matches) const;
  template <typename SlackAt>
  absl::Duration LeastSlack(const RequestSpan& request, const SlackAt& slack_of_pair) const;
  absl::Duration SlackOfPair(const std::string& router, const std::string& prefill, const std::string& decode,
                             SteadyTime at) const;
  absl::Duration SlackOfPeers(const std::string& decode, SteadyTime at) const;

  const Deployment deployment_;
  std::vector<One> all_;
};

}  // namespace baton::testing
