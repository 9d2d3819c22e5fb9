// SPDX-License-Identifier: Apache-2.0
#include "cli/tools/synthetic_vocabulary.h"

#include <string_view>

#include "common/strings.h"
#include "text/tokenizer/byte_alphabet.h"

namespace baton {
namespace {

constexpr std::string_view kLetters = "etaoinshrdlucmfwypvbgkjqxz";  // by frequency in English
constexpr std::string_view kSpecialTokens[] = {"<|begin_of_text|>", "<|end_of_text|>", "<|user|>",
                                               "<|assistant|>",     "<|system|>",      "<|end|>"};
constexpr std::string_view kChatTemplate =
    "{{ bos_token }}{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}";

}  // namespace

SyntheticVocabulary MakeSyntheticVocabulary(int size) {
  SyntheticVocabulary vocabulary;
  std::vector<std::string>& tokens = vocabulary.tokens;
  const size_t words = size - std::size(kSpecialTokens);
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(AlphabetLetter(static_cast<unsigned char>(byte)));

  // Runs of two, three and more letters, some of them after a space.
  std::vector<std::string> shorter = {AlphabetLetter(' ')};
  for (const char letter : kLetters) shorter.emplace_back(1, letter);
  while (tokens.size() < words) {
    std::vector<std::string> runs;
    for (const std::string& run : shorter) {
      for (const char letter : kLetters) {
        if (tokens.size() == words) break;
        vocabulary.merges.push_back(Concat(run, " ", std::string(1, letter)));
        tokens.push_back(run + letter);
        runs.push_back(tokens.back());
      }
    }
    shorter = std::move(runs);
  }
  vocabulary.types.assign(words, GgufTokenType::kNormal);
  for (const std::string_view token : kSpecialTokens) {
    tokens.emplace_back(token);
    vocabulary.types.push_back(GgufTokenType::kControl);
  }
  vocabulary.bos = static_cast<int32_t>(words);
  vocabulary.eos = size - 1;
  vocabulary.chat_template = kChatTemplate;
  return vocabulary;
}

}  // namespace baton
