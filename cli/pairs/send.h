// SPDX-License-Identifier: Apache-2.0
// Sends requests, some at a time, and collects whole answers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "baton/v1/inference.pb.h"
#include "cli/pairs/answer.h"
#include "common/steady_time.h"

namespace baton {

class Client;
class Interrupt;

struct SendOptions {
  int at_once = 1;
  absl::Duration request_timeout = absl::Minutes(1);
  SteadyTime deadline = {};  // of all: later requests are not sent, and running ones end
};

struct SentAnswer {
  enum class State {
    kAnswered,
    kFailed,   // `reason` says why
    kNotSent,  // the deadline has passed, or the user has interrupted
  };
  State state = State::kNotSent;
  std::string reason = {};
  ComparedAnswer answer = {};
  v1::Finish finish = {};
};

// Blocks until every request has ended, which the deadline bounds. Answers are in the order of the requests.
std::vector<SentAnswer> Send(Client& client, std::span<const v1::GenerateRequest> requests, const SendOptions& options,
                             Interrupt& interrupt);

}  // namespace baton
