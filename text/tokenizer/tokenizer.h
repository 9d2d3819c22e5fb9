// SPDX-License-Identifier: Apache-2.0
// A Tokenizer converts text to token ids and back, as defined by a model's tokenizer.json.
//
// Immutable after Create, so thread-safe. A Detokenizer belongs to one request and is not thread-safe.
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
  // Takes the texts of tokenizer.json and tokenizer_config.json; the latter may be empty. UNIMPLEMENTED names an
  // unsupported feature. INVALID_ARGUMENT names the field and what was expected.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(std::string_view tokenizer_json,
                                                           std::string_view tokenizer_config_json);
  virtual ~Tokenizer() = default;

  // Recognizes special tokens in `text`. With add_special_tokens, adds the tokens of the model's post-processor,
  // usually BOS, unless `text` starts with them. Invalid UTF-8 becomes U+FFFD.
  virtual absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text, bool add_special_tokens) const = 0;
  // Returns the text of a whole sequence. INVALID_ARGUMENT when an id is outside the vocabulary.
  virtual absl::StatusOr<std::string> Decode(const std::vector<TokenId>& ids, bool skip_special_tokens) const = 0;

  virtual int vocab_size() const = 0;  // highest id + 1
  // Returns the bytes of a token, which may be part of a code point. Empty when `id` is outside the vocabulary.
  virtual std::string_view TokenBytes(TokenId id) const = 0;
  virtual bool IsSpecial(TokenId id) const = 0;
  virtual std::optional<TokenId> IdOf(std::string_view token_text) const = 0;  // finds added tokens only
  virtual std::optional<TokenId> bos() const = 0;
};

// Converts token ids to text incrementally. The deltas concatenate to the decoded text, and no delta splits a code
// point.
class Detokenizer {
 public:
  Detokenizer(const Tokenizer& tokenizer, bool skip_special_tokens)
      : tokenizer_(tokenizer), skip_special_tokens_(skip_special_tokens) {}
  // Returns the text that `id` completes; bytes of an unfinished code point wait for the next call. Invalid bytes
  // become U+FFFD.
  std::string Push(TokenId id);
  // Returns U+FFFD if a code point is unfinished, otherwise "".
  std::string Flush();

 private:
  const Tokenizer& tokenizer_;
  const bool skip_special_tokens_;
  std::string pending_;  // bytes of an unfinished code point
};

}  // namespace baton
