// SPDX-License-Identifier: Apache-2.0
// A byte-level BPE vocabulary of any size, for models without a trained vocabulary.
//
// All bytes come first, then runs of English letters, each one letter longer than an earlier run. The special tokens of
// a chat come last. Each text can be encoded, and each token has a text of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/formats/gguf_conventions.h"

namespace baton {

struct SyntheticVocabulary {
  std::vector<std::string> tokens;  // by id, in the letters of byte-level vocabularies
  std::vector<std::string> merges;  // "left right", by rank
  std::vector<GgufTokenType> types;
  int32_t bos = 0;
  int32_t eos = 0;
  std::string chat_template;
};

// `size` is from 1024 to 400'000.
SyntheticVocabulary MakeSyntheticVocabulary(int size);

}  // namespace baton
