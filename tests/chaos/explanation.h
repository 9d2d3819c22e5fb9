// Which errors of requests are explained by what was done to a deployment, and when.
//
// A request may fail with UNAVAILABLE when there was a moment between its start and its end at which no pair of workers
// could be reached through its router, or when more was done meanwhile than it has attempts. It may fail with
// RESOURCE_EXHAUSTED when as many requests were in flight as a worker takes, or when each decode worker that could be
// reached had lost sight of a peer, whose pages are in quarantine then.
//
// What was done has an effect beyond its end: a loss is noticed late, a process takes its time to start, and who tries
// again waits between tries. So a disturbance counts for some slack longer; SlackNeeded says how much of it an
// explanation takes.
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
  bool decode_prefills = false;   // a decode worker serves alone, too
  int worker_requests = 0;        // that a worker takes at once
  int max_attempts = 0;           // of one request that may fail
  std::string client = "client";  // what requests come from
};

struct RequestSpan {
  std::string router;
  SteadyTime start;
  SteadyTime end;
};

class Disturbances {
 public:
  explicit Disturbances(Deployment deployment) : deployment_(std::move(deployment)) {}

  // A process, or the connection of `node` and `other`, is not to be relied on until End.
  void Begin(std::string what, std::string node, std::string other, SteadyTime at);
  void End(const std::string& node, const std::string& other, SteadyTime at);
  void Clear() { all_.clear(); }

  // The least slack with which there was a moment without a pair that the request could reach; infinite if there was
  // none.
  absl::Duration SlackNeeded(const RequestSpan& request) const;
  // ... without such a pair whose decode worker saw all of its peers.
  absl::Duration SlackNeededForQuarantine(const RequestSpan& request) const;
  // More began or ended during the request, or `slack` before it, than it has attempts.
  bool ExhaustAttempts(const RequestSpan& request, absl::Duration slack) const;
  // At some moment of the request, `all` of them considered, there were as many as a worker takes. Workers may know of
  // one for `slack` after its end.
  bool FillQueues(const RequestSpan& request, const std::vector<RequestSpan>& all, absl::Duration slack) const;

  // A line for each that touches the time from `from` to `to`, with times since `zero`.
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
    // How long before `at` it has ceased to count; infinite if it began later.
    absl::Duration SlackAt(SteadyTime at) const;
  };

  template <typename Matches>
  absl::Duration LeastSlackAt(SteadyTime at, const Matches& matches) const;
  template <typename SlackOfPair>
  absl::Duration LeastSlack(const RequestSpan& request, const SlackOfPair& slack_of_pair) const;
  absl::Duration SlackOfPair(const std::string& router, const std::string& prefill, const std::string& decode,
                             SteadyTime at) const;
  absl::Duration SlackOfPeers(const std::string& decode, SteadyTime at) const;

  const Deployment deployment_;
  std::vector<One> all_;
};

}  // namespace baton::testing
