// SPDX-License-Identifier: Apache-2.0
#include "router/text_assembler.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace baton::router {

TextAssembler::TextAssembler(const Tokenizer& tokenizer, Options options)
    : options_(std::move(options)), detokenizer_(tokenizer, options_.skip_special_tokens) {}

TextAssembler::Delta TextAssembler::Push(TokenId token) {
  ++pushed_tokens_;
  std::string added = detokenizer_.Push(token);
  if (pushed_tokens_ <= options_.min_tokens) return {std::move(added), std::nullopt};
  return Match(added);
}

TextAssembler::Delta TextAssembler::Flush() {
  Delta delta = Match(detokenizer_.Flush());
  if (!delta.stop) delta.text += std::exchange(held_, {});
  return delta;
}

TextAssembler::Delta TextAssembler::Match(std::string_view added) {
  held_ += added;
  size_t first = std::string::npos;
  const std::string* matched = nullptr;
  for (const std::string& stop : options_.stop) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    if (matched == nullptr || at < first || (at == first && stop.size() < matched->size())) {
      first = at;
      matched = &stop;
    }
  }
  if (matched != nullptr) {
    Delta delta{held_.substr(0, first), *matched};
    held_.clear();
    return delta;
  }
  const size_t send = held_.size() - HeldBack();
  Delta delta{held_.substr(0, send), std::nullopt};
  held_.erase(0, send);
  return delta;
}

// Returns the length of the longest suffix of held_ that is a prefix of a stop string. Stop strings begin at a code
// point, so that the cut splits no code point.
size_t TextAssembler::HeldBack() const {
  const std::string_view held = held_;
  size_t longest = 0;
  for (const std::string_view stop : options_.stop) {
    for (size_t length = std::min(held.size(), stop.size() - 1); length > longest; --length) {
      if (held.ends_with(stop.substr(0, length))) {
        longest = length;
        break;
      }
    }
  }
  return longest;
}

}  // namespace baton::router
