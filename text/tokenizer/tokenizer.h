// Text to token ids and back, as the tokenizer.json of a Hugging Face folder says.
//
// Immutable after loading, so thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ids.h"

namespace baton {

class Tokenizer {
 public:
  // From the text of tokenizer.json and (may be empty) tokenizer_config.json. Anything in them that is not supported is
  // refused by its name (UNIMPLEMENTED); a malformed file by the field and what was expected (INVALID_ARGUMENT).
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(std::string_view tokenizer_json,
                                                           std::string_view tokenizer_config_json);
  virtual ~Tokenizer() = default;

  // Special tokens in `text` are recognized. With add_special_tokens the BOS is put first when the tokenizer says so
  // and `text` does not start with it already. Invalid UTF-8 becomes U+FFFD.
  virtual absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text, bool add_special_tokens) const = 0;
  // The whole text. Ids outside the vocabulary are INVALID_ARGUMENT.
  virtual absl::StatusOr<std::string> Decode(const std::vector<TokenId>& ids, bool skip_special_tokens) const = 0;

  virtual int vocab_size() const = 0;  // highest id + 1
  // The bytes a token stands for (part of a code point perhaps); a special token's own text. Empty when out of range.
  virtual std::string_view TokenBytes(TokenId id) const = 0;
  virtual bool IsSpecial(TokenId id) const = 0;
  virtual std::optional<TokenId> IdOf(std::string_view token_text) const = 0;  // added tokens only
  virtual std::optional<TokenId> bos() const = 0;
};

// Token ids to text, one at a time: the concatenation of all deltas is the whole text's, and no delta splits a code
// point.
class Detokenizer {
 public:
  Detokenizer(const Tokenizer& tokenizer, bool skip_special_tokens)
      : tokenizer_(tokenizer), skip_special_tokens_(skip_special_tokens) {}
  // The text that `id` completes; empty when it ends within a code point. Invalid bytes become U+FFFD.
  std::string Push(TokenId id);
  // What is left of an unfinished code point, as U+FFFD.
  std::string Flush();

 private:
  const Tokenizer& tokenizer_;
  const bool skip_special_tokens_;
  std::string pending_;  // bytes of an unfinished code point
};

}  // namespace baton
