// What turns a piece of text into tokens: tokenizer.json's model.
//
// Immutable after loading, so thread-safe.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"

namespace baton {

class JsonNode;
class TokenDecoder;
class Vocabulary;

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the tokens of `piece`, which is valid UTF-8 of less than 4 GiB, to `out`.
  virtual void Encode(std::string_view piece, std::vector<TokenId>& out) const = 0;
};

// Of type BPE (bpe.h) or Unigram (unigram.h); another one is refused by its name. The tokens' bytes go into
// `vocabulary`.
absl::StatusOr<std::unique_ptr<const TokenModel>> LoadTokenModel(const JsonNode& json, const TokenDecoder& decoder,
                                                                 Vocabulary& vocabulary);

}  // namespace baton
