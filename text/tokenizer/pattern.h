// SPDX-License-Identifier: Apache-2.0
// Loads the patterns of tokenizer.json: {"String": "..."} or {"Regex": "..."}.
#pragma once

#include "absl/status/statusor.h"
#include "text/tokenizer/json_node.h"
#include "text/tokenizer/regex.h"

namespace baton {

absl::StatusOr<Regex> LoadPattern(const JsonNode& json);

// The class \w of Rust's regex crate, which Hugging Face's tokenizers use, without brackets.
inline constexpr std::string_view kWordCharacters = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control})";
// Returns whether `c` is in the class \w. Decides \b.
bool IsWordCharacter(char32_t c);

}  // namespace baton
