// Sends a workload in open loop: every request at its arrival time, however many are still unanswered.
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
  int max_in_flight = 4096;
  absl::Duration request_timeout = absl::Minutes(5);
};

// Times are from the request's planned arrival, so that a late start counts as latency.
struct RequestOutcome {
  grpc::StatusCode code = grpc::StatusCode::OK;
  std::string reason;  // why it failed; may be empty
  uint32_t prompt_tokens = 0;
  uint32_t cached_tokens = 0;               // of the prompt's
  std::vector<absl::Duration> token_times;  // one per output token; tokens of one message came together
  absl::Duration total;
};

struct LoadResult {
  std::vector<RequestOutcome> outcomes;  // of the requests sent, in the order they ended
  int not_sent = 0;                      // max_in_flight was reached when they arrived
  absl::Duration duration;               // first arrival to last end
};

// Runs on gRPC's callback threads; blocks until every request has ended, which request_timeout bounds. An interrupt
// sends nothing more and cancels what runs.
LoadResult GenerateLoad(Client& client, const Workload& workload, const LoadOptions& options, Interrupt& interrupt);

}  // namespace baton
