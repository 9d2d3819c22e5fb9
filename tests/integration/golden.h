// SPDX-License-Identifier: Apache-2.0
// The demo model's golden prompts and continuations, computed by an independent implementation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace baton::testing {

struct GoldenCase {
  std::string prompt;  // without the <|begin_of_text|> that the tokenizer adds
  std::vector<int32_t> prompt_ids;
  std::vector<int32_t> greedy_ids;  // 48 tokens, end tokens ignored
  std::string greedy_text;          // special tokens included
  int first_stop = -1;              // index of the first end token; -1: none
  std::vector<int32_t> top_ids;     // after the prompt: the 20 best tokens and their logits
  std::vector<double> top_logits;
  double min_margin = 0;  // the smallest gap between the two best logits along the continuation, 4 decimals
};
const std::vector<GoldenCase>& GoldenCases();

}  // namespace baton::testing
