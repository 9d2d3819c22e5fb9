// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/token_decoder.h"

#include <charconv>
#include <climits>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/json_node.h"
#include "text/tokenizer/metaspace.h"

namespace baton {

std::optional<unsigned char> ByteOfFallbackToken(std::string_view word) {
  if (word.size() != 6 || !word.starts_with("<0x") || word.back() != '>') return std::nullopt;
  unsigned char byte = 0;
  const char* const end = word.data() + 5;
  return std::from_chars(word.data() + 3, end, byte, 16).ptr == end ? std::optional(byte) : std::nullopt;
}

std::string FallbackToken(unsigned char byte) { return absl::StrFormat("<0x%02X>", byte); }

absl::StatusOr<TokenDecoder> TokenDecoder::Load(const JsonNode& json) {
  TokenDecoder decoder;
  BATON_ASSIGN_OR_RETURN(const std::string_view type, json.GetString("type"));
  if (type != "Sequence") {
    BATON_RETURN_IF_ERROR(decoder.LoadStep(json, /*is_only=*/true));
    return decoder;
  }
  BATON_ASSIGN_OR_RETURN(const std::vector<JsonNode> items, json.GetItems("decoders"));
  for (const JsonNode& item : items) BATON_RETURN_IF_ERROR(decoder.LoadStep(item, items.size() == 1));
  return decoder;
}

absl::Status TokenDecoder::LoadStep(const JsonNode& json, bool is_only) {
  BATON_ASSIGN_OR_RETURN(const std::string_view type, json.GetString("type"));
  if (type == "Fuse") return absl::OkStatus();  // joins tokens, which Decode does anyway
  if (type == "ByteLevel") {
    if (!is_only) return json.Unsupported("a ByteLevel decoder together with other decoders");
    is_byte_level_ = true;
    return absl::OkStatus();
  }
  if (type == "ByteFallback") {
    byte_fallback_ = true;
    return absl::OkStatus();
  }
  if (type == "Replace") {
    BATON_ASSIGN_OR_RETURN(const JsonNode pattern, json.Get("pattern"));
    if (!pattern.Find("String")) return json.Unsupported("a Replace decoder with a regular expression");
    BATON_ASSIGN_OR_RETURN(const std::string_view what, pattern.GetString("String"));
    if (what.empty()) return absl::InvalidArgumentError(Concat(pattern.path(), ".String: expected a text, got \"\""));
    BATON_ASSIGN_OR_RETURN(const std::string_view content, json.GetString("content"));
    replacements_.emplace_back(what, content);
    return absl::OkStatus();
  }
  if (type == "Strip") {
    BATON_ASSIGN_OR_RETURN(trimmed_, json.GetString("content"));
    BATON_ASSIGN_OR_RETURN(const int64_t start, json.GetInteger("start", 0, INT_MAX));
    BATON_ASSIGN_OR_RETURN(const int64_t stop, json.GetInteger("stop"));
    if (stop != 0) return json.Unsupported("a Strip decoder at the end");
    trims_ = static_cast<int>(start);
    return absl::OkStatus();
  }
  if (type == "Metaspace") {
    BATON_ASSIGN_OR_RETURN(const Metaspace metaspace, ReadMetaspace(json));
    replacements_.emplace_back(metaspace.replacement, " ");
    trimmed_ = " ";
    trims_ = metaspace.prepend == Metaspace::Prepend::kNever ? 0 : 1;
    return absl::OkStatus();
  }
  return json.Unsupported(Concat("decoder '", type, "'"));
}

std::string TokenDecoder::Bytes(std::string_view word) const {
  if (is_byte_level_) {
    std::optional<std::string> bytes = BytesFromAlphabet(word);
    return bytes ? *std::move(bytes) : std::string(word);
  }
  if (byte_fallback_) {
    if (const std::optional<unsigned char> byte = ByteOfFallbackToken(word))
      return std::string(1, static_cast<char>(*byte));
  }
  std::string bytes(word);
  for (const auto& [what, content] : replacements_) {
    bytes = absl::StrReplaceAll(ToAbsl(bytes), {{ToAbsl(what), ToAbsl(content)}});
  }
  return bytes;
}

std::string_view TokenDecoder::Trimmed(std::string_view text) const {
  for (int i = 0; i < trims_ && !trimmed_.empty() && text.starts_with(trimmed_); ++i)
    text.remove_prefix(trimmed_.size());
  return text;
}

}  // namespace baton
