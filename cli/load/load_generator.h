// SPDX-License-Identifier: Apache-2.0
// Sends a workload. In open loop every request goes out at its arrival time, however many requests are still
// unanswered; in closed loop, when fewer than `concurrency` requests are unanswered.
#pragma once

#include <grpcpp/support/status.h>

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/load/workload.h"

namespace baton {

class Client;
class Interrupt;

struct LoadOptions {
  int max_in_flight = 4096;  // of an open loop
  int concurrency = 0;       // of a closed loop; 0: open loop
  int warmup = 0;            // the first requests, which are sent and not measured
  absl::Duration request_timeout = absl::Minutes(5);
};

// The tokens of one message of an answer, which arrive together.
struct TokenArrival {
  absl::Duration at;
  int tokens = 0;  // at least 1
};

// Times count from the request's planned arrival, so that a late start counts as latency. In closed loop they count
// from the sending.
struct RequestOutcome {
  grpc::StatusCode code = grpc::StatusCode::OK;
  std::string reason;  // why the request failed; may be empty
  uint32_t prompt_tokens = 0;
  uint32_t cached_tokens = 0;          // of the prompt's
  std::vector<TokenArrival> arrivals;  // in order
  absl::Duration total;
};

struct LoadResult {
  std::vector<RequestOutcome> outcomes;  // of the measured requests sent, in the order in which they ended
  int not_sent = 0;                      // measured requests that arrived while max_in_flight were under way
  absl::Duration duration;               // from the first measured arrival to the last end
};

// Blocks until every request has ended, which request_timeout bounds. The calls run on gRPC's callback threads. An
// interrupt sends nothing more and cancels the running requests.
LoadResult GenerateLoad(Client& client, const Workload& workload, const LoadOptions& options, Interrupt& interrupt);

}  // namespace baton
