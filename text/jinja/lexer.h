// SPDX-License-Identifier: Apache-2.0
// Splits a template into tokens and strips whitespace around tags by Jinja's rules, with trim_blocks and lstrip_blocks.
// The signs "-" and "+" of a tag take precedence over both options. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace baton::jinja {

enum class TokenKind {
  kText,  // text outside of tags
  kBlockBegin,
  kBlockEnd,
  kVariableBegin,
  kVariableEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,  // end of the template
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 1;
  std::string text;  // the name, the operator, the text, the unescaped string, or the digits of a number
  int64_t integer = 0;
  double number = 0;
};

// The last token is kEnd. INVALID_ARGUMENT names the line of a syntax error.
absl::StatusOr<std::vector<Token>> Tokenize(std::string_view source);

// INVALID_ARGUMENT "chat template, line <line>: <what>".
absl::Status SyntaxError(int line, std::string_view what);

}  // namespace baton::jinja
