// Sends requests as a client would and writes down everything that came back.
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

// All that an answer is, for comparing two of them: logprobs by their bits.
struct Answer {
  std::string text;
  std::vector<int32_t> token_ids;
  // Per token: chosen, then the top ones; (token id, bits of the logprob) each.
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
  // What the API promises of a stream's order: gapless output indexes from 0, one finish at the end and only with OK,
  // as many logprobs as tokens when asked for. Empty when kept.
  std::string broken_promise;
};

struct CallOptions {
  absl::Duration timeout = absl::Seconds(60);
  int cancel_after_chunks = 0;  // 0: never
  bool wait_for_ready = false;  // a router that is not there is waited for
  // Called after each chunk, in the calling thread.
  std::function<void(const v1::Chunk&)> on_chunk = nullptr;
};

// Thread-safe.
class TestClient {
 public:
  explicit TestClient(const std::string& target);

  Reply Generate(const v1::GenerateRequest& request, const CallOptions& options = {}) const;
  // At most `at_once` at a time, a thread each; replies in the order of the requests.
  std::vector<Reply> GenerateAll(const std::vector<v1::GenerateRequest>& requests, const CallOptions& options = {},
                                 size_t at_once = SIZE_MAX) const;

  v1::Inference::Stub& inference() const { return *inference_; }
  v1::Admin::Stub& admin() const { return *admin_; }

 private:
  std::unique_ptr<v1::Inference::Stub> inference_;
  std::unique_ptr<v1::Admin::Stub> admin_;
};

// A greedy request for `max_tokens` of text that goes on after `prompt`, whatever end tokens come.
v1::GenerateRequest GreedyRequest(const std::string& prompt, uint32_t max_tokens);

}  // namespace baton::testing
