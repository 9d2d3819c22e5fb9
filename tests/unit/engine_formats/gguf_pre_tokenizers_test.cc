// SPDX-License-Identifier: Apache-2.0
// Expected words follow the original models' tokenizers. llama.cpp (18 August 2026) gives the same words. Comments name
// the exceptions, where llama.cpp's patterns only approximate the original patterns.
#include "engine/formats/gguf_pre_tokenizers.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/strings.h"
#include "engine/formats/gguf_convert.h"
#include "tests/gguf_builder.h"
#include "tests/status_matchers.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/json_node.h"
#include "text/tokenizer/oniguruma.h"
#include "text/tokenizer/pieces.h"
#include "text/tokenizer/pre_tokenizer.h"
#include "text/tokenizer/token_decoder.h"
#include "text/tokenizer/tokenizer.h"

namespace baton {
namespace {

constexpr char kText[] = "It's IT'S 12345 été_X1  \n\n HELLOworld 中国、한글 !~";

absl::StatusOr<std::map<std::string, std::string>> TextsOf(const std::string& pre,
                                                           const std::vector<std::string>& more_tokens = {},
                                                           const std::vector<std::string>& merges = {}) {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(AlphabetLetter(static_cast<unsigned char>(byte)));
  tokens.insert(tokens.end(), more_tokens.begin(), more_tokens.end());
  testing::GgufBuilder builder;
  builder.String("tokenizer.ggml.model", "gpt2").String("tokenizer.ggml.pre", pre);
  builder.Strings("tokenizer.ggml.tokens", tokens).Strings("tokenizer.ggml.merges", merges);
  const std::string bytes = builder.File("");
  auto file = ParseGguf(std::as_bytes(std::span(bytes)), "m.gguf");
  if (!file.ok()) return file.status();
  return GgufTextAssets({"m.gguf", {}, file->metadata, {}});
}

// Returns the words of kText, separated by "|".
std::string Words(const std::string& pre) {
  const auto texts = TextsOf(pre);
  EXPECT_OK(texts);
  const nlohmann::json json = nlohmann::json::parse(texts->at("tokenizer.json"));
  const auto steps = LoadPreTokenizers(JsonNode(json["pre_tokenizer"], "pre_tokenizer"));
  EXPECT_OK(steps);
  Pieces pieces;
  pieces.list.push_back({kText});
  for (const auto& step : steps->chain) EXPECT_OK(step->Split(pieces));
  return absl::StrJoin(pieces.list, "|",
                       [](std::string* out, const Piece& piece) { out->append(piece.text.data(), piece.text.size()); });
}

// Patterns whose classes need a translation to groups would take memory per character (oniguruma.h).
TEST(GgufPreTokenizersTest, PatternsUseOnlyCharacterClassesOfPcre) {
  for (const GgufPreTokenizer& pre : GgufPreTokenizers()) {
    for (const std::string_view pattern : pre.patterns) {
      const std::string same = absl::StrReplaceAll(
          ToAbsl(pattern),
          {{R"(\s)", R"(\p{White_Space})"}, {R"(\S)", R"(\P{White_Space})"}, {R"(\p{Han})", R"(\p{sc:Han})"}});
      EXPECT_EQ(*PcreFromOniguruma(pattern), same);
    }
  }
}

TEST(GgufPreTokenizersTest, SplitLikeTheOriginalTokenizers) {
  const std::string qwen = "It|'s| IT|'S| |1|2|3|4|5| été|_X|1|  \n\n| HELLOworld| 中国|、한글| !~";
  const std::string llama3 = "It|'s| IT|'S| |123|45| été|_X|1|  \n\n| HELLOworld| 中国|、한글| !~";
  const std::string gpt2 = "It|'s| IT|'|S| 12345| été|_|X|1|  \n\n| HELLOworld| 中国|、|한글| !~";
  const std::string gpt2_digits = "It|'s| IT|'|S| |1|2|3|4|5| été|_|X|1|  \n\n| HELLOworld| 中国|、|한글| !~";
  const std::string gpt4o = "It's| IT'S| |123|45| été|_X|1|  \n\n| HELLOworld| 中国|、한글| !~";
  const std::string lines = "It's IT'S 12345 été_X1  |\n\n| HELLOworld 中国、한글 !~";
  // llama.cpp does not treat ~ as a symbol.
  const std::string deepseek_v3 = "It|'s| IT|'S| |123|45| été|_X|1|  \n\n| HELLOworld| |中国|、|한글| !~";
  for (const auto& [name, words] : std::vector<std::pair<std::string, std::string>>{
           {"default", "It|'|s| IT|'|S| |123|45| été|_|X|1|  \n\n| HELLOworld| 中国|、|한글| |!~"},
           {"falcon", "It|'|s| IT|'|S| |123|45| été|_|X|1|  \n\n| HELLOworld| 中国|、|한글| |!~"},
           {"gpt-2", gpt2},
           {"olmo", gpt2},
           {"smollm", gpt2_digits},
           {"command-r", gpt2_digits},
           {"llama-bpe", llama3},
           {"dbrx", llama3},
           {"jais-2", llama3},
           {"minicpm5", llama3},
           {"qwen2", qwen},
           {"stablelm2", qwen},
           {"qwen35", qwen},
           {"seed-coder", qwen},
           {"bailingmoe", qwen},
           {"tekken", qwen},
           {"exaone-moe", "It|'s| IT|'S| |1|2|3|4|5| été|_X|1|  \n\n| HELLOworld 中国|、한글| !~"},
           {"laguna", "It|'s| IT|'S| |1|2|3|4|5| été|_X|1|  |\n\n| HELLOworld| 中国|、한글| !~"},
           {"gpt-4o", gpt4o},
           {"granite-embed-multi-97m", gpt4o},
           {"tiny_aya", "It's| IT'S| |12|345| été|_X|1|  \n\n| HELLOworld| 中国|、한글| !~"},
           {"youtu", "It's| IT'S| |1|2|3|4|5| été|_X|1|  \n\n| HELLOworld| |中国|、|한글| !~"},
           {"kimi-k2", "It's| IT'S| |123|45| été|_X|1|  \n\n| HELLOworld| |中国|、한글| !~"},
           // The original punctuation class has the range :-~, which includes ASCII letters. llama.cpp's has no
           // letters.
           {"deepseek-coder", "It|'|s| IT|'|S| |1|2|3|4|5| é|t|é|_|X|1|  |\n|\n| HELLOworld| |中国|、|한글| !~"},
           {"deepseek-llm", "It|'|s| IT|'|S| |12345| é|t|é|_|X|1|  |\n|\n| HELLOworld| |中国|、|한글| !~"},
           {"deepseek-v3", deepseek_v3},
           // llama.cpp's class of Asian scripts has U+8C48 instead of U+F900 and thus includes private use characters.
           {"afmoe", "It|'s| IT|'S| |12|345| été|_X|1|  \n\n| HELLOworld| |中国|、|한글| !~"},
           {"superbpe", "It's IT'S |12|345| été_X|1|  \n\n HELLOworld 中国、한글 !~"},
           {"bloom", "It's| IT'S| 12345| été_X1|  \n\n| HELLOworld| 中国|、|한글| !|~"},
           {"viking", "It's| IT'S| |1|2|3|4|5| été_X|1|  \n\n| HELLOworld| 中国|、|한글| !|~"},
           {"chameleon", "It|'|s| IT|'|S| |1|2|3|4|5| été|_|X|1|  |\n|\n| HELLOworld| 中国|、|한글| |!|~"},
           {"gemma4", lines},
           {"sarvam-moe", lines}}) {
    EXPECT_EQ(Words(name), words) << name;
  }
}

TEST(GgufPreTokenizersTest, CharacterAlphabetReplacesSpacesLikeSentencePiece) {
  const std::vector<std::string> tokens = {"\u2581", "\u2581h", "\u2581hi", "\n", "\n\n"};
  std::vector<std::string> characters = tokens;
  for (int byte = 0; byte < 256; ++byte) characters.push_back(FallbackToken(static_cast<unsigned char>(byte)));
  for (const char* pre : {"gemma4", "sarvam-moe"}) {
    ASSERT_OK_AND_ASSIGN(const auto texts, TextsOf(pre, characters, {"\u2581 h", "\u2581h i"}));
    ASSERT_OK_AND_ASSIGN(const auto tokenizer, Tokenizer::Create(texts.at("tokenizer.json"), ""));
    const auto words = [&](const std::string& text) {
      return absl::StrJoin(*tokenizer->Encode(text, false), "|", [&](std::string* out, TokenId id) {
        out->append(tokenizer->TokenBytes(id).data(), tokenizer->TokenBytes(id).size());
      });
    };
    EXPECT_EQ(words("hi hi\n\nhi"), pre == std::string("gemma4") ? "h|i| hi|\n\n|h|i" : "h|i| hi|\n|\n|h|i");
    for (const std::string text : {"hi  hi \n\n\nhi", "hi\xC3\xA9", "", "hi\n<0xA9>\nhi"}) {
      EXPECT_EQ(*tokenizer->Decode(*tokenizer->Encode(text, false), false), text);
    }
  }
}

TEST(GgufPreTokenizersTest, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const GgufPreTokenizer& pre : GgufPreTokenizers()) {
    for (const std::string_view name : pre.names) EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(FindGgufPreTokenizer(pre.names.front()), &pre);
    EXPECT_EQ(NameGgufPreTokenizer(pre), pre.names.front());
  }
  EXPECT_EQ(FindGgufPreTokenizer("whitespace"), nullptr);
}

// Long runs of one character provoke backtracking. The test asserts success, not time.
TEST(GgufPreTokenizersTest, LongRunsStayWithinTheLimitsOfBacktracking) {
  for (const GgufPreTokenizer& pre : GgufPreTokenizers()) {
    ASSERT_OK_AND_ASSIGN(const auto texts, TextsOf(std::string(pre.names.front())));
    const nlohmann::json json = nlohmann::json::parse(texts.at("tokenizer.json"));
    ASSERT_OK_AND_ASSIGN(const auto steps, LoadPreTokenizers(JsonNode(json["pre_tokenizer"], "pre_tokenizer")));
    for (const char* unit : {"a", "A", "aB", "1", "½", " ", "\n", "'", "中", "é", "e\u0301", "a ", "! ", "\u3000"}) {
      std::string text;
      while (text.size() < 100'000) text += unit;
      Pieces pieces;
      pieces.list.push_back({text});
      for (const auto& step : steps.chain)
        EXPECT_OK(step->Split(pieces)) << pre.names.front() << " on runs of " << unit;
    }
  }
}

}  // namespace
}  // namespace baton
