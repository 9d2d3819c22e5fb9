// SPDX-License-Identifier: Apache-2.0
// The server to which load is sent, behind one interface. GrpcTarget is a Baton router; OpenAiTarget is any server that
// streams OpenAI's completions.
//
// A target is thread-safe and owns its connections. An observer hears of one request: the calls come one after another,
// on a thread of the target, and OnEnd is the last. An observer must not block.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/steady_time.h"

namespace baton {

// A prompt of token ids, and an answer that ends at its length and nowhere else.
struct LoadRequest {
  std::string model;
  std::string cache_salt = {};  // empty: none
  std::vector<int32_t> prompt;
  int output_tokens = 0;
};

// The tokens of one message of an answer, which arrive together.
struct TokenArrival {
  SteadyTime at;
  int tokens = 0;  // at least 1
};

// How a request ended.
struct RequestEnd {
  // Empty: success. Otherwise one of:
  //   a status code such as RESOURCE_EXHAUSTED or DEADLINE_EXCEEDED
  //   HTTP_429 and the like: the HTTP server refused
  //   BROKEN_STREAM: the answer stopped before its end
  //   SERVER_ERROR: the server reported an error within the answer
  //   MALFORMED_ANSWER: the answer is not in the API's form
  std::string error;
  std::string reason;  // may be empty
  SteadyTime at;
  std::vector<TokenArrival> arrivals;  // in order
  std::vector<int32_t> answer;         // token ids, as far as the server tells them
  uint32_t prompt_tokens = 0;          // by the server's count; 0: not told
  uint32_t cached_tokens = 0;          // of the prompt's
};

class RequestObserver {
 public:
  virtual ~RequestObserver() = default;
  // `tokens` of the answer have arrived. The end has the exact arrivals.
  virtual void OnTokens(SteadyTime at, int tokens) = 0;
  virtual void OnEnd(RequestEnd end) = 0;
};

class LoadTarget {
 public:
  virtual ~LoadTarget() = default;  // every request has ended
  // Starts a request, which ends at `deadline` at the latest: DEADLINE_EXCEEDED.
  virtual void Start(LoadRequest request, SteadyTime deadline, std::shared_ptr<RequestObserver> observer) = 0;
  // Cancels the running requests, which then end with CANCELLED.
  virtual void CancelAll() = 0;
};

}  // namespace baton
