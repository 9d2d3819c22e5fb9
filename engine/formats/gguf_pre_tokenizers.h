// The pre-tokenizers that GGUF files name: how a text is cut into words before BPE, as the original models'
// tokenizer.json has it where that is known, else as llama.cpp does it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace baton {

struct GgufPreTokenizer {
  // Words are bytes in the byte alphabet, or characters as they are with U+2581 for a space (SentencePiece's way).
  enum class Alphabet { kBytes, kCharacters };

  std::vector<std::string_view> names;          // tokenizer.ggml.pre
  std::vector<std::string_view> patterns = {};  // regular expressions, each cutting what the one before left
  bool gpt2_words = false;                      // then ByteLevel's own pattern, GPT-2's
  bool ignore_merges = false;                   // a word that is a token is that token
  bool nfc = false;                             // Unicode normalization before everything else
  bool add_bos = false;                         // when the file does not say
  Alphabet alphabet = Alphabet::kBytes;
};

// Null for a name that is not known. Lives as long as the program.
const GgufPreTokenizer* FindGgufPreTokenizer(std::string_view name);
const std::vector<GgufPreTokenizer>& GgufPreTokenizers();
std::string GgufPreTokenizerNames();  // "default, gpt-2, ..."

// The name of the one that does the same as `like`, whose names and add_bos do not matter; empty when there is none.
std::string_view NameGgufPreTokenizer(const GgufPreTokenizer& like);

}  // namespace baton
