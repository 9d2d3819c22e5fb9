// SPDX-License-Identifier: Apache-2.0
#include "cli/report/token_report.h"

#include <unicode/uchar.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/str_format.h"
#include "cli/report/answer_text.h"
#include "common/strings.h"
#include "text/utf8.h"

namespace baton {
namespace {

// Returns true for characters without a visible mark: controls, formats, separators and unusual spaces.
bool IsInvisible(char32_t c) {
  constexpr uint32_t kInvisible = U_GC_CC_MASK | U_GC_CF_MASK | U_GC_Z_MASK;
  return c != ' ' && (U_GET_GC_MASK(static_cast<UChar32>(c)) & kInvisible) != 0;
}

// Returns a token's bytes in quotes, with escapes for what cannot be seen and for parts of characters.
std::string Visible(std::string_view bytes) {
  std::string text = "\"";
  while (!bytes.empty()) {
    const Utf8Unit unit = ReadUtf8(bytes);
    const std::string_view character = bytes.substr(0, unit.length);
    if (unit.kind != Utf8Unit::kCodePoint) {
      for (const char byte : character) absl::StrAppendFormat(&text, "\\x%02X", static_cast<unsigned char>(byte));
    } else if (character == "\n") {
      text += "\\n";
    } else if (character == "\r") {
      text += "\\r";
    } else if (character == "\t") {
      text += "\\t";
    } else if (character == "\\" || character == "\"") {
      Append(text, "\\", character);
    } else if (IsInvisible(unit.code_point)) {
      absl::StrAppendFormat(&text, "\\u{%X}", static_cast<uint32_t>(unit.code_point));
    } else {
      text += character;
    }
    bytes.remove_prefix(unit.length);
  }
  return text + "\"";
}

}  // namespace

void PrintTokens(const Console& console, const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  for (const TokenId id : ids) {
    *console.out << absl::StrFormat("%8d  %s\n", id, Visible(tokenizer.TokenBytes(id)));
  }
  console.out->flush();
  *console.err << Count(ids.size(), "token") << std::endl;
}

void PrintTokensAsJson(const Console& console, const Tokenizer& tokenizer, const std::string& text,
                       const std::vector<TokenId>& ids) {
  nlohmann::ordered_json tokens = nlohmann::ordered_json::array();
  std::string storage;
  for (const TokenId id : ids) tokens.push_back(RepairUtf8(tokenizer.TokenBytes(id), storage));
  const nlohmann::ordered_json json = {{"text", text}, {"token_ids", ids}, {"tokens", std::move(tokens)}};
  *console.out << json.dump() << std::endl;
}

}  // namespace baton
