// What happens to a deployment and when: random, and the same for the same seed.
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
    kCut,       // nothing that `node` sends arrives at `other`, and the other way round if `both`
    kRestore,
    kDelay,  // of every packet; with `on` false it is over
    kLoss,
  };
  absl::Duration at = absl::ZeroDuration();
  Kind kind = Kind::kRequest;
  int request = 0;
  int router = 0;
  int cancel_after_chunks = 0;                     // 0: not cancelled
  absl::Duration deadline = absl::ZeroDuration();  // zero: the usual one
  std::string node = {};
  std::string other = {};
  bool both = false;
  bool on = false;
};

struct ChaosPlan {
  int events = 100;   // requests and disturbances; that these end again is not counted
  int requests = 24;  // in the catalogue
  std::vector<std::string> routers = {};
  std::vector<std::string> workers = {};
  bool network = false;  // there is one to disturb, with a node "client"
  absl::Duration mean_gap = absl::Milliseconds(80);
  absl::Duration longest = absl::Seconds(3);  // that a disturbance lasts
  absl::Duration drain = absl::Seconds(2);    // what a worker told to drain is given
};

// In the order of their times. A process is disturbed by one thing at a time; every disturbance ends.
std::vector<ChaosEvent> MakeSchedule(const ChaosPlan& plan, uint64_t seed);

// For logs.
std::string Describe(const ChaosEvent& event);

}  // namespace baton::testing
