// How tokenizer.json writes what is searched for: {"String": "..."} or {"Regex": "..."}.
#pragma once

#include "absl/status/statusor.h"
#include "text/tokenizer/json_node.h"
#include "text/tokenizer/regex.h"

namespace baton {

absl::StatusOr<Regex> LoadPattern(const JsonNode& json);

// What Rust's regex crate, and so Hugging Face's tokenizers, takes \w for, without the brackets of a class.
inline constexpr std::string_view kWordCharacters = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control})";

}  // namespace baton
