// SPDX-License-Identifier: Apache-2.0
// A TextAssembler turns output tokens into the text that a client may see: detokenizes and withholds stop strings.
//
// Text that could still become part of a stop string is held back, so that no part of a stop string is ever sent. The
// match that begins first wins; of two that begin together, the shorter. A stop string counts only in text that begins
// after the first min_tokens tokens.
//
// Not thread-safe: belongs to one request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace baton::router {

class TextAssembler {
 public:
  struct Options {
    std::vector<std::string> stop;  // no empty strings
    uint32_t min_tokens = 0;
    bool skip_special_tokens = true;
  };

  struct Delta {
    std::string text;                 // to send; whole code points
    std::optional<std::string> stop;  // the stop string that ended the output; no text follows
  };

  // `tokenizer` must outlive the assembler.
  TextAssembler(const Tokenizer& tokenizer, Options options);

  Delta Push(TokenId token);
  // Returns all held-back text at the end of the output.
  Delta Flush();

 private:
  Delta Match(std::string_view added);
  size_t HeldBack() const;

  const Options options_;
  Detokenizer detokenizer_;
  uint32_t pushed_tokens_ = 0;
  std::string held_;  // searched text that is not sent yet
};

}  // namespace baton::router
