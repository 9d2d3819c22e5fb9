// SPDX-License-Identifier: Apache-2.0
// Sends requests as a client and records the whole answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "baton/v1/inference.grpc.pb.h"
#include "common/steady_time.h"

namespace baton::testing {

// The content of an answer, for comparison. Logprobs compare by their bits.
struct Answer {
  std::string text;
  std::vector<int32_t> token_ids;
  // Per token: (token id, bits of the logprob) of the chosen token, then of the top tokens.
  std::vector<std::vector<std::pair<int32_t, uint32_t>>> logprobs;
  v1::FinishReason reason = v1::FINISH_REASON_UNSPECIFIED;
  grpc::StatusCode code = grpc::StatusCode::OK;

  bool operator==(const Answer&) const = default;
};
void PrintTo(const Answer& answer, std::ostream* out);

struct Reply {
  Answer answer;
  grpc::Status status;
  v1::Finish finish;  // empty unless OK
  std::vector<v1::Chunk> chunks;
  std::vector<SteadyTime> chunk_times;
  // The violated promise of the API, empty if none: gapless output indexes from 0, one finish at the end and only with
  // OK, as many logprobs as tokens if requested.
  std::string broken_promise;
};

struct CallOptions {
  absl::Duration timeout = absl::Seconds(60);
  int cancel_after_chunks = 0;  // 0: never
  bool wait_for_ready = false;  // waits for a router that does not run yet
  // Runs after each chunk, in the calling thread.
  std::function<void(const v1::Chunk&)> on_chunk = nullptr;
};

// Thread-safe.
class TestClient {
 public:
  explicit TestClient(const std::string& target);

  Reply Generate(const v1::GenerateRequest& request, const CallOptions& options = {}) const;
  // Runs at most `at_once` requests at a time, on a thread each. Replies are in the order of the requests.
  std::vector<Reply> GenerateAll(const std::vector<v1::GenerateRequest>& requests, const CallOptions& options = {},
                                 size_t at_once = SIZE_MAX) const;

  v1::Inference::Stub& inference() const { return *inference_; }
  v1::Admin::Stub& admin() const { return *admin_; }

 private:
  std::unique_ptr<v1::Inference::Stub> inference_;
  std::unique_ptr<v1::Admin::Stub> admin_;
};

// Returns a greedy request for `max_tokens` tokens after `prompt`. End tokens do not end the output.
v1::GenerateRequest GreedyRequest(const std::string& prompt, uint32_t max_tokens);

}  // namespace baton::testing
