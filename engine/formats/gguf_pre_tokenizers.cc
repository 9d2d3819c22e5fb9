// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/gguf_pre_tokenizers.h"

#include <algorithm>

#include "common/strings.h"

namespace baton {
namespace {

using Alphabet = GgufPreTokenizer::Alphabet;

constexpr std::string_view kGpt2Words = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";

constexpr std::string_view kLlama3Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Splits runs of spaces into powers of two. The lookbehind limits the search for line feeds to the first space of a
// run. Without the lookbehind, a long run takes quadratic time.
constexpr std::string_view kJais2Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|(?<![^\S\r\n])\s*[\r\n]+|)"
    R"(\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|)"
    R"(\s{1,2}(?!\S)|\s{1})";

constexpr std::string_view kQwen2Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kQwen35Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// A word ends where an upper case letter follows a lower case letter.
constexpr std::string_view kGpt4oWords =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kTekkenWords =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kYoutuWords =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// A run of Han characters is a word. The original intersects [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] and
// [\p{Ll}\p{Lm}\p{Lo}\p{M}] with [^\p{Han}]; the negated classes here are the same sets without an intersection.
constexpr std::string_view kKimiK2Words =
    R"(\p{Han}+|)"
    R"([^\r\n\p{L}\p{N}]?[^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{Han}]*[^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{Han}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{Han}]+[^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{Han}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// An earlier pattern of the entry splits off numbers.
constexpr std::string_view kDeepSeekV3Words =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Letters with case, as of Unicode 11.
constexpr std::string_view kDeepSeekLetters =
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚ)"
    R"(Ḁ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻ)"
    R"(Ȿ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)";
constexpr std::string_view kDeepSeekPunctuation = R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)";
constexpr std::string_view kDeepSeekAsian = "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+";
constexpr std::string_view kHanAndKana = "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+";

constexpr std::string_view kBloomWords = R"( ?[^(\s|.,!?…。，、।۔،)]+)";
constexpr std::string_view kLines = R"([^\n]+|[\n]+)";
constexpr std::string_view kThreeDigits = "[0-9][0-9][0-9]";

}  // namespace

const std::vector<GgufPreTokenizer>& GgufPreTokenizers() {
  static const auto* const kAll = new std::vector<GgufPreTokenizer>{
      {.names = {"default"}, .patterns = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Words, R"(\p{N}+)", kThreeDigits}},
      {.names = {"gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v2-es", "jina-v2-de", "a.x-4.0", "mellum",
                 "jina-v1-en", "jina-v2-code", "roberta-bpe", "jais", "trillion", "granite-docling", "exaone4"},
       .gpt2_words = true},
      {.names = {"olmo", "mpt", "modern-bert"}, .gpt2_words = true, .nfc = true},
      {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
                 "jina-v5-nano"},
       .patterns = {kLlama3Words},
       .ignore_merges = true,
       .add_bos = true},
      {.names = {"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, .patterns = {kLlama3Words}},
      {.names = {"jais-2"}, .patterns = {kJais2Words}},
      {.names = {"qwen2"}, .patterns = {kQwen2Words}, .nfc = true},
      {.names = {"stablelm2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "hunyuan", "solar-open", "grok-2"},
       .patterns = {kQwen2Words}},
      {.names = {"qwen35"}, .patterns = {kQwen35Words}, .nfc = true},
      {.names = {"minicpm5"},
       .patterns =
           {R"(\p{N}{1,3})",
            R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
       .ignore_merges = true},
      {.names = {"seed-coder"},
       .patterns =
           {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"}},
      {.names = {"bailingmoe", "bailingmoe2", "llada-moe"},
       .patterns =
           {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"}},
      // Letters and the single spaces between them are one word. The possessive quantifiers avoid quadratic
      // backtracking and do not change the matches, because nothing follows in this alternative.
      {.names = {"exaone-moe"},
       .patterns =
           {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*+(?: \p{L}\p{M}*+)*+)++|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"}},
      {.names = {"laguna"}, .patterns = {kLines, kQwen2Words}},
      {.names = {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, .patterns = {kGpt4oWords}},
      {.names = {"granite-embed-multi-97m"}, .patterns = {kGpt4oWords}, .ignore_merges = true},
      {.names = {"tiny_aya", "cohere2moe"}, .patterns = {R"(\d{1,3}(?=(?:\d{3})*\b))", kGpt4oWords}},
      {.names = {"tekken"}, .patterns = {kTekkenWords}, .ignore_merges = true, .add_bos = true},
      {.names = {"youtu"},
       .patterns = {"[\uAC00-\uD7A3\u3131-\u318E]+|[\uFF01\u2026\u201C\u201D\u2018\u2019\u2014\uFF1A\uFF1B\uFF0C\u3001-"
                    "\u303F\uFE30-\uFE4F]+|[\u3105-\u312F]+|[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+",
                    kYoutuWords},
       .ignore_merges = true},
      {.names = {"kimi-k2"}, .patterns = {kKimiK2Words}},
      {.names = {"smollm", "starcoder", "refact", "codeshell", "exaone", "minerva-7b", "mellum2"},
       .patterns = {R"(\p{N})"},
       .gpt2_words = true},
      {.names = {"command-r"}, .patterns = {R"(\p{N})"}, .gpt2_words = true, .nfc = true},
      {.names = {"falcon"}, .patterns = {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2Words, kThreeDigits}},
      {.names = {"deepseek-coder"},
       .patterns = {R"([\r\n])", R"(\s?\p{L}+)", kDeepSeekPunctuation, kDeepSeekAsian, R"(\p{N})"}},
      {.names = {"deepseek-llm"},
       .patterns = {R"([\r\n])", kDeepSeekLetters, kDeepSeekPunctuation, R"(\s+$)", kDeepSeekAsian, R"(\p{N}+)"}},
      {.names = {"deepseek-v3", "hunyuan-dense", "joyai-llm"},
       .patterns = {R"(\p{N}{1,3})", kHanAndKana, kDeepSeekV3Words}},
      {.names = {"afmoe"},
       .patterns =
           {R"(\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N})))",
            "[\u4E00-\u9FFF\u3400-\u4DBF\uF900-\uFAFF\u3040-\u309F\u30A0-\u30FF\uFF65-\uFF9F\u2F00-\u2FDF\u0E40-"
            "\u0E7F\u0E80-\u0EFF\u1780-\u17FF\u1000-\u109F\uAA60-\uAA7F\uA9E0-\uA9FF\uAC00-\uD7AF\u1100-\u11FF]+",
            kDeepSeekV3Words}},
      {.names = {"superbpe"}, .patterns = {R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"}},
      {.names = {"poro-chat", "bloom", "gpt3-finnish"}, .patterns = {kBloomWords}},
      {.names = {"viking"}, .patterns = {kBloomWords, R"(\p{N})"}},
      {.names = {"chameleon"},
       .patterns = {"<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", R"(([\t\n]|    |  ))", R"(\p{N})",
                    R"([\p{P}!-/:-@\[-`{-~])"},
       .gpt2_words = true,
       .add_bos = true},
      // ignore_merges: the file has tokens for runs of line feeds, but no merges that lead to them.
      {.names = {"gemma4", "granite-embed-multi-311m"},
       .patterns = {kLines},
       .ignore_merges = true,
       .add_bos = true,
       .alphabet = Alphabet::kCharacters},
      {.names = {"sarvam-moe"}, .patterns = {kLines}, .alphabet = Alphabet::kCharacters},
  };
  return *kAll;
}

const GgufPreTokenizer* FindGgufPreTokenizer(std::string_view name) {
  for (const GgufPreTokenizer& pre : GgufPreTokenizers()) {
    if (std::find(pre.names.begin(), pre.names.end(), name) != pre.names.end()) return &pre;
  }
  return nullptr;
}

std::string_view NameGgufPreTokenizer(const GgufPreTokenizer& like) {
  for (const GgufPreTokenizer& pre : GgufPreTokenizers()) {
    if (pre.patterns == like.patterns && pre.gpt2_words == like.gpt2_words && pre.nfc == like.nfc &&
        pre.ignore_merges == like.ignore_merges && pre.alphabet == like.alphabet) {
      return pre.names.front();
    }
  }
  return {};
}

std::string GgufPreTokenizerNames() {
  std::string text;
  for (const GgufPreTokenizer& pre : GgufPreTokenizers()) {
    for (const std::string_view name : pre.names) Append(text, text.empty() ? "" : ", ", name);
  }
  return text;
}

}  // namespace baton
