// Splits a template into tokens, with Jinja's rules for whitespace: trim_blocks and lstrip_blocks are on, as for chat
// templates, and a tag's own "-" and "+" come first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace baton::jinja {

enum class TokenKind {
  kText,  // outside of tags
  kBlockBegin,
  kBlockEnd,
  kVariableBegin,
  kVariableEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,  // of the template
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 1;
  std::string text;  // the name, the operator, the text or the value of the string
  int64_t integer = 0;
  double number = 0;
};

// The last token is kEnd. INVALID_ARGUMENT with the line when there is no such token.
absl::StatusOr<std::vector<Token>> Tokenize(std::string_view source);

absl::Status SyntaxError(int line, std::string_view what);

}  // namespace baton::jinja
