// SPDX-License-Identifier: Apache-2.0
// Encodes pieces of text to tokens: the `model` of tokenizer.json.
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
  // Appends the tokens of `piece` to `out`. `piece` is valid UTF-8 of less than 4 GiB.
  virtual void Encode(std::string_view piece, std::vector<TokenId>& out) const = 0;
};

// Loads a model of type BPE (bpe.h) or Unigram (unigram.h) and adds its tokens to `vocabulary`. UNIMPLEMENTED names
// another type.
absl::StatusOr<std::unique_ptr<const TokenModel>> LoadTokenModel(const JsonNode& json, const TokenDecoder& decoder,
                                                                 Vocabulary& vocabulary);

}  // namespace baton
