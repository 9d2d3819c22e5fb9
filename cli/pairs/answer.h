// SPDX-License-Identifier: Apache-2.0
// An answer as `verify` compares it: tokens, text and the bits of each logprob. Plain values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "baton/v1/inference.pb.h"

namespace baton {

struct ComparedLogprob {
  int32_t token_id = 0;
  uint32_t bits = 0;  // of the float

  bool operator==(const ComparedLogprob&) const = default;
};

struct ComparedAnswer {
  std::vector<int32_t> token_ids = {};
  std::vector<std::vector<ComparedLogprob>> logprobs = {};  // by token: the chosen token, then the top tokens
  std::string text = {};
  v1::FinishReason reason = v1::FINISH_REASON_UNSPECIFIED;
  std::string stopped_by = {};  // the stop string or token; empty: none

  void Add(const v1::Chunk& chunk);
  void Add(const v1::Finish& finish);

  bool operator==(const ComparedAnswer&) const = default;
};

// The first place where an answer is not as expected.
struct AnswerDifference {
  enum class Kind { kToken, kLogprob, kLength, kText, kFinish };
  Kind kind = Kind::kToken;
  size_t output_index = 0;    // kToken, kLogprob, kLength
  std::string expected = {};  // kLogprob: the token, the logprob and its bits
  std::string got = {};
};

// Returns nothing if the answers are equal. Tokens and logprobs come before text.
std::optional<AnswerDifference> FirstDifference(const ComparedAnswer& expected, const ComparedAnswer& got);

// Returns, for instance, "output token 5 is 812, expected 97".
std::string ToText(const AnswerDifference& difference);

}  // namespace baton
