// SPDX-License-Identifier: Apache-2.0
// Requests that run while a test disturbs the processes that serve the requests.
#pragma once

#include <atomic>
#include <future>
#include <utility>
#include <vector>

#include "client.h"
#include "common/steady_time.h"

namespace baton::testing {

class BackgroundLoad {
 public:
  // If `at_once` is less than the number of requests, workers compute prompts all the time, not only at the beginning.
  BackgroundLoad(const TestClient& client, std::vector<v1::GenerateRequest> requests, size_t at_once = SIZE_MAX)
      : replies_(std::async(std::launch::async, [this, &client, requests = std::move(requests), at_once] {
          const CallOptions options = {.timeout = absl::Minutes(3), .on_chunk = [this](const v1::Chunk& chunk) {
                                         tokens_ += chunk.token_ids_size();
                                       }};
          return client.GenerateAll(requests, options, at_once);
        })) {}

  // Waits until all answers together have `count` tokens. False after `timeout`, or if the load ends first.
  bool WaitForTokens(int count, absl::Duration timeout) {
    const SteadyTime deadline = SteadyTime::Now() + timeout;
    while (tokens_ < count) {
      if (SteadyTime::Now() >= deadline ||
          replies_.wait_for(std::chrono::milliseconds(1)) == std::future_status::ready) {
        return tokens_ >= count;
      }
    }
    return true;
  }

  // Waits for all replies. Every request has a deadline.
  std::vector<Reply> Replies() { return replies_.get(); }

 private:
  std::atomic<int> tokens_{0};
  std::future<std::vector<Reply>> replies_;
};

}  // namespace baton::testing
