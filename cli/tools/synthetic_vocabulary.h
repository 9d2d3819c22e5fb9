// A byte-level BPE vocabulary of any size, for models without a trained one: all bytes, then runs of the letters of
// English, each one letter longer than a run before it, and at the end the special tokens of a chat. Any text can be
// encoded, and every token decodes to a text of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/formats/gguf_conventions.h"

namespace baton {

struct SyntheticVocabulary {
  std::vector<std::string> tokens;  // in the letters of byte-level vocabularies, by id
  std::vector<std::string> merges;  // "left right", the first one first
  std::vector<GgufTokenType> types;
  int32_t bos = 0;
  int32_t eos = 0;
  std::string chat_template;
};

// `size` from 1024 to 400'000.
SyntheticVocabulary MakeSyntheticVocabulary(int size);

}  // namespace baton
