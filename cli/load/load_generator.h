// SPDX-License-Identifier: Apache-2.0
// Sends a workload. In open loop every conversation begins at its arrival time, however many requests are still
// unanswered; in closed loop, when fewer than `concurrency` conversations are under way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/load/load_target.h"
#include "cli/load/workload.h"

namespace baton {

class Interrupt;
class RunProgress;

struct LoadOptions {
  int max_in_flight = 4096;  // of an open loop
  int concurrency = 0;       // of a closed loop; 0: open loop
  int warmup = 0;            // the first conversations, which are sent and not measured
  absl::Duration request_timeout = absl::Minutes(5);
};

// Times count from the request's planned arrival, so that a late start counts as latency. In closed loop they count
// from the sending. The planned arrival of a later turn is the end of the turn before and the think time.
struct RequestOutcome {
  struct Arrival {
    absl::Duration at;
    int tokens = 0;  // at least 1
  };
  std::string error;              // empty: success; see RequestEnd
  std::string reason;             // why the request failed; may be empty
  absl::Duration start;           // the planned arrival, from the first measured arrival
  int turn = 0;                   // of its conversation, from 0
  int wanted_tokens = 0;          // the answer's length
  uint32_t prompt_tokens = 0;     // by the server's count, or else of the prompt that was sent
  uint32_t cached_tokens = 0;     // of the prompt's
  std::vector<Arrival> arrivals;  // in order
  absl::Duration total;
};

struct LoadResult {
  std::vector<RequestOutcome> outcomes;  // of the measured requests sent, in the order in which they ended
  int not_sent = 0;                      // measured requests that arrived while max_in_flight were under way
  int skipped_turns = 0;                 // measured turns not sent, because a turn before failed or was not sent
  int unknown_answers = 0;         // measured turns whose prompt has random tokens in place of the earlier answer's
  absl::Duration warmup_duration;  // from the start to the first measured arrival
  absl::Duration duration;         // from the first measured arrival to the last end
};

// Blocks until every request has ended, which request_timeout bounds. An interrupt sends nothing more and cancels the
// running requests. `progress` may be null.
LoadResult GenerateLoad(LoadTarget& target, const Workload& workload, const LoadOptions& options, Interrupt& interrupt,
                        RunProgress* progress = nullptr);

}  // namespace baton
