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
};
const std::vector<GoldenCase>& GoldenCases();

}  // namespace baton::testing
