// SPDX-License-Identifier: Apache-2.0
// Helpers that the tests of text/ share: small tokenizer.json documents for tests to modify, and random texts.
#pragma once

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/files.h"
#include "text/chat/conversation.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/tokenizer.h"
#include "text/utf8.h"

namespace baton::testing {

inline std::string DemoFile(const std::string& name) { return ReadFile(SourceFolder() / "models/demo-chat" / name); }

inline std::unique_ptr<Tokenizer> DemoTokenizer() {
  return *Tokenizer::Create(DemoFile("tokenizer.json"), DemoFile("tokenizer_config.json"));
}

// Byte-level BPE: ids 0 to 255 are the bytes, 256 and above the results of `merges` in order. `merges` are spelled in
// the byte alphabet. Text is not split before BPE.
inline nlohmann::json SmallTokenizer(const std::vector<std::pair<std::string, std::string>>& merges = {}) {
  nlohmann::json vocab;
  for (int byte = 0; byte < 256; ++byte) vocab[AlphabetLetter(static_cast<unsigned char>(byte))] = byte;
  nlohmann::json merge_list = nlohmann::json::array();
  int next = 256;
  for (const auto& [left, right] : merges) {
    vocab[left + right] = next++;
    merge_list.push_back(left + " " + right);
  }
  return {{"added_tokens", nlohmann::json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merge_list}}}};
}

inline nlohmann::json AddedToken(int id, const std::string& content) {
  return {{"id", id},        {"content", content}, {"special", false},    {"normalized", false},
          {"lstrip", false}, {"rstrip", false},    {"single_word", false}};
}

inline absl::StatusOr<std::string> RenderTurns(const ChatTemplate& chat_template, std::vector<ChatTurn> turns,
                                               const std::string& bos = "", const std::string& eos = "",
                                               bool add_generation_prompt = true) {
  absl::StatusOr<ChatTemplateInputs> inputs = TemplateInputs({.messages = std::move(turns)}, {}, "chat");
  if (!inputs.ok()) return inputs.status();
  inputs->bos_token = bos;
  inputs->eos_token = eos;
  inputs->add_generation_prompt = add_generation_prompt;
  return chat_template.Render(*inputs);
}

// Returns `length` random scalar values: half ASCII, a quarter any, a quarter that tokenizers often mishandle.
inline std::string RandomUnicode(std::mt19937& random, int length) {
  static constexpr char32_t kTricky[] = {0x200D, 0xFE0F, 0x1F468, 0x0301, 0xFEFF, 0x180E, 0x2028, 0xE9, 0xFFFD, 0x0};
  std::string text;
  for (int i = 0; i < length; ++i) {
    char32_t c = 0;
    switch (random() % 4) {
      case 0: c = kTricky[random() % std::size(kTricky)]; break;
      case 1:
        c = random() % 0x110000;
        if (c >= 0xD800 && c <= 0xDFFF) c = 0xD7FF;
        break;
      default: c = random() % 0x80;
    }
    AppendUtf8(c, text);
  }
  return text;
}

}  // namespace baton::testing
