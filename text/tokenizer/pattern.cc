// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/pattern.h"

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

}  // namespace baton
