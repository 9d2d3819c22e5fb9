// SPDX-License-Identifier: Apache-2.0
// Random schedules of requests and disturbances. A seed always gives the same schedule.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace baton::testing {

struct ChaosEvent {
  enum class Kind {
    kRequest,   // number `request` of the catalogue, to router `router`; may be cut short
    kKill,      // SIGKILL of `node`
    kDrain,     // SIGTERM of `node`
    kRestart,   // of `node`, which was killed or told to drain
    kStop,      // SIGSTOP of `node`
    kContinue,  // SIGCONT of `node`
    kCut,       // of all packets from `node` to `other`; in both directions if `both`
    kRestore,
    kDelay,  // of every packet; ends with `on` false
    kLoss,
  };
  absl::Duration at = absl::ZeroDuration();
  Kind kind = Kind::kRequest;
  int request = 0;
  int router = 0;
  int cancel_after_chunks = 0;                     // 0: not cancelled
  absl::Duration deadline = absl::ZeroDuration();  // zero: the usual deadline
  std::string node = {};
  std::string other = {};
  bool both = false;
  bool on = false;
};

struct ChaosPlan {
  int events = 100;   // requests and disturbances, without the ends of disturbances
  int requests = 24;  // in the catalogue
  std::vector<std::string> routers = {};
  std::vector<std::string> workers = {};
  bool network = false;  // a virtual network exists, with a node "client"
  absl::Duration mean_gap = absl::Milliseconds(80);
  absl::Duration longest = absl::Seconds(3);  // disturbance
  absl::Duration drain = absl::Seconds(2);    // time of a drain
};

// Returns events in the order of their times. A process has one disturbance at a time; every disturbance ends.
std::vector<ChaosEvent> MakeSchedule(const ChaosPlan& plan, uint64_t seed);

// For logs.
std::string Describe(const ChaosEvent& event);

}  // namespace baton::testing
