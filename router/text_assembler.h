// Output tokens to the text that a client may see: detokenizes and withholds stop strings.
//
// Text is held back while it could still become part of a stop string, so that no part of one is ever sent. The match
// that begins first wins (of those beginning together, the shortest). As for stop tokens, min_tokens comes first: a
// stop string counts only if it lies wholly in text that begins after the first min_tokens tokens.
//
// Not thread-safe: it belongs to one request.
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
    std::vector<std::string> stop;  // none empty
    uint32_t min_tokens = 0;
    bool skip_special_tokens = true;
  };

  struct Delta {
    std::string text;                 // may be sent; whole code points
    std::optional<std::string> stop;  // the stop string that ended the output; nothing follows then
  };

  // `tokenizer` must outlive it.
  TextAssembler(const Tokenizer& tokenizer, Options options);

  Delta Push(TokenId token);
  // The output has ended: everything held back.
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
