// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/pattern.h"

#include <unicode/uchar.h>

#include <cstdint>

#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {

absl::StatusOr<Regex> LoadPattern(const JsonNode& json) {
  if (const auto literal = json.Find("String")) {
    BATON_ASSIGN_OR_RETURN(const std::string_view text, literal->String());
    return Regex::Compile(text, Regex::Syntax::kLiteral);
  }
  if (!json.Find("Regex")) return json.Expected("an object with 'Regex' or 'String'");
  BATON_ASSIGN_OR_RETURN(const std::string_view pattern, json.GetString("Regex"));
  absl::StatusOr<Regex> regex = Regex::Compile(pattern, Regex::Syntax::kPattern);
  if (regex.ok()) return regex;
  return absl::Status(regex.status().code(), Concat(json.path(), ".Regex: ", regex.status().message()));
}

bool IsWordCharacter(char32_t c) {
  constexpr uint32_t kMarksDigitsConnectors = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
  const auto code_point = static_cast<UChar32>(c);
  return u_hasBinaryProperty(code_point, UCHAR_ALPHABETIC) != 0 ||
         (U_GET_GC_MASK(code_point) & kMarksDigitsConnectors) != 0 ||
         u_hasBinaryProperty(code_point, UCHAR_JOIN_CONTROL) != 0;
}

}  // namespace baton
