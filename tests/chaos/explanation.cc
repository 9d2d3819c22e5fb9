// SPDX-License-Identifier: Apache-2.0
#include "explanation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace baton::testing {

void Disturbances::Begin(std::string what, std::string node, std::string other, SteadyTime at) {
  all_.push_back({.what = std::move(what), .node = std::move(node), .other = std::move(other), .from = at});
}

void Disturbances::End(const std::string& node, const std::string& other, SteadyTime at) {
  for (One& one : all_) {
    if (one.node == node && one.other == other) one.to = std::min(one.to, at);
  }
}

absl::Duration Disturbances::One::SlackAt(SteadyTime at) const {
  if (from > at) return absl::InfiniteDuration();
  return std::max(at - to, absl::ZeroDuration());
}

template <typename Matches>
absl::Duration Disturbances::LeastSlackAt(SteadyTime at, const Matches& matches) const {
  absl::Duration least = absl::InfiniteDuration();
  for (const One& one : all_) {
    if (matches(one)) least = std::min(least, one.SlackAt(at));
  }
  return least;
}

absl::Duration Disturbances::SlackOfPair(const std::string& router, const std::string& prefill,
                                         const std::string& decode, SteadyTime at) const {
  return LeastSlackAt(at, [&](const One& one) {
    return one.IsOf(prefill) || one.IsOf(decode) || one.IsBetween(router, prefill) || one.IsBetween(router, decode) ||
           one.IsBetween(prefill, decode);
  });
}

absl::Duration Disturbances::SlackOfPeers(const std::string& decode, SteadyTime at) const {
  std::vector<std::string> workers = deployment_.prefill;
  workers.insert(workers.end(), deployment_.decode.begin(), deployment_.decode.end());
  return LeastSlackAt(at, [&](const One& one) {
    return std::any_of(workers.begin(), workers.end(), [&](const std::string& peer) {
      return peer != decode && (one.IsOf(peer) || one.IsBetween(peer, decode));
    });
  });
}

// The needed slack falls only when a disturbance begins: only the request's start and these times need a check.
template <typename SlackAt>
absl::Duration Disturbances::LeastSlack(const RequestSpan& request, const SlackAt& slack_of_pair) const {
  std::vector<SteadyTime> moments = {request.start};
  for (const One& one : all_) {
    if (one.from > request.start && one.from <= request.end) moments.push_back(one.from);
  }
  absl::Duration least = absl::InfiniteDuration();
  for (const SteadyTime at : moments) {
    absl::Duration of_best_pair = absl::ZeroDuration();
    for (const std::string& decode : deployment_.decode) {
      for (const std::string& prefill : deployment_.prefill) {
        of_best_pair = std::max(of_best_pair, slack_of_pair(prefill, decode, at));
      }
      if (deployment_.decode_prefills) of_best_pair = std::max(of_best_pair, slack_of_pair(decode, decode, at));
    }
    const absl::Duration of_router = LeastSlackAt(at, [&](const One& one) {
      return one.IsOf(request.router) || one.IsBetween(deployment_.client, request.router);
    });
    least = std::min({least, of_best_pair, of_router});
  }
  return least;
}

absl::Duration Disturbances::SlackNeeded(const RequestSpan& request) const {
  return LeastSlack(request, [&](const std::string& prefill, const std::string& decode, SteadyTime at) {
    return SlackOfPair(request.router, prefill, decode, at);
  });
}

absl::Duration Disturbances::SlackNeededForQuarantine(const RequestSpan& request) const {
  return LeastSlack(request, [&](const std::string& prefill, const std::string& decode, SteadyTime at) {
    return std::min(SlackOfPair(request.router, prefill, decode, at), SlackOfPeers(decode, at));
  });
}

bool Disturbances::ExhaustAttempts(const RequestSpan& request, absl::Duration slack) const {
  const auto is_during = [&](SteadyTime at) { return at >= request.start - slack && at <= request.end; };
  int changes = 0;
  for (const One& one : all_) changes += (is_during(one.from) ? 1 : 0) + (is_during(one.to) ? 1 : 0);
  return changes >= deployment_.max_attempts;
}

bool Disturbances::FillQueues(const RequestSpan& request, const std::vector<RequestSpan>& all,
                              absl::Duration slack) const {
  // The number of requests in flight is highest when a request starts.
  for (const RequestSpan& last : all) {
    if (last.start < request.start - slack || last.start > request.end) continue;
    const auto in_flight = std::count_if(all.begin(), all.end(), [&](const RequestSpan& one) {
      return one.start <= last.start && one.end + slack >= last.start;
    });
    if (in_flight >= deployment_.worker_requests) return true;
  }
  return false;
}

std::string Disturbances::Story(SteadyTime from, SteadyTime to, SteadyTime zero) const {
  std::string story;
  for (const One& one : all_) {
    if (one.to < from || one.from > to) continue;
    absl::StrAppend(&story, absl::StrFormat("  %.3f s: %s", absl::ToDoubleSeconds(one.from - zero), one.what));
    if (one.to < SteadyTime::InfiniteFuture()) {
      absl::StrAppend(&story, absl::StrFormat(", until %.3f s", absl::ToDoubleSeconds(one.to - zero)));
    }
    story += "\n";
  }
  return story;
}

}  // namespace baton::testing
