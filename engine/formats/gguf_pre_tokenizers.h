// SPDX-License-Identifier: Apache-2.0
// The table of pre-tokenizers that GGUF files name. A pre-tokenizer cuts text into words before BPE.
//
// Patterns are taken from the original model's tokenizer.json where that file is public, otherwise from llama.cpp.
// Immutable, so thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace baton {

struct GgufPreTokenizer {
  // kBytes: BPE works on GPT-2's byte alphabet. kCharacters: BPE works on characters, with U+2581 for a space
  // (SentencePiece's convention).
  enum class Alphabet { kBytes, kCharacters };

  std::vector<std::string_view> names;          // values of tokenizer.ggml.pre
  std::vector<std::string_view> patterns = {};  // each pattern splits the pieces that the pattern before left
  bool gpt2_words = false;                      // after `patterns`, split with GPT-2's pattern
  bool ignore_merges = false;                   // a word that is a token is not cut by BPE
  bool nfc = false;                             // normalize the text to NFC first
  bool add_bos = false;                         // default when the file has no tokenizer.ggml.add_bos_token
  Alphabet alphabet = Alphabet::kBytes;
};

// Returns null for an unknown name. Entries live as long as the program.
const GgufPreTokenizer* FindGgufPreTokenizer(std::string_view name);
const std::vector<GgufPreTokenizer>& GgufPreTokenizers();
std::string GgufPreTokenizerNames();  // "default, gpt-2, ..."

// Returns the first name of the entry that equals `like` in all but names and add_bos; empty when no entry does.
std::string_view NameGgufPreTokenizer(const GgufPreTokenizer& like);

}  // namespace baton
