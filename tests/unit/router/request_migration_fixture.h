// SPDX-License-Identifier: Apache-2.0
// Live migration: attempt 2 is opened on d2 while attempt 1 runs on d1, which drains.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "request_machine_fixture.h"

namespace baton::router {

class RequestMigrationTest : public RequestMachineTest {
 protected:
  // 'a', 'b', 'c' have come from d1, which drains; attempt 2 is accepted by d2, and d1 was told to hand over.
  void BeginMigrating() {
    BeginDecoding();
    Decode(1, Tokens(1, {1, 2}));
    Decode(1, Draining());
    PlaceMigrationOn("d2");
    Accept(2);
    ASSERT_EQ(Count<action::Migrate>(), 1);
  }
  void Finish(uint32_t attempt) {
    std::vector<TokenId> rest;
    for (TokenId token = static_cast<TokenId>(SentTokens().size()); token < 10; ++token) rest.push_back(token);
    Decode(attempt, Tokens(static_cast<uint32_t>(10 - rest.size()), rest));
    Decode(attempt, DecodeFinished(v1::FINISH_REASON_LENGTH));
  }
  // Of the attempts that had ended, in that order.
  std::vector<std::string> Ends() const {
    std::vector<std::string> ends;
    for (const Action& action : actions_) {
      const auto* ended = std::get_if<action::AttemptEnded>(&action);
      if (ended != nullptr) ends.push_back(absl::StrCat(ended->attempt, " ", std::string(Name(ended->outcome.cause))));
    }
    return ends;
  }
};

}  // namespace baton::router
