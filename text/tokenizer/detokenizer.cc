// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/tokenizer.h"
#include "text/utf8.h"

namespace baton {

std::string Detokenizer::Push(TokenId id) {
  std::string text;
  if (skip_special_tokens_ && tokenizer_.IsSpecial(id)) return text;
  pending_ += tokenizer_.TokenBytes(id);
  pending_.erase(0, AppendRepairedUtf8(pending_, text));
  return text;
}

std::string Detokenizer::Flush() {
  if (pending_.empty()) return {};
  // An unfinished code point is a single maximal invalid part, so a single U+FFFD replaces it.
  pending_.clear();
  return std::string(kReplacementCharacter);
}

}  // namespace baton
