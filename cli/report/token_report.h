// SPDX-License-Identifier: Apache-2.0
// Prints tokens for people and for programs, for the commands tokenize and render.
#pragma once

#include <string>
#include <vector>

#include "cli/console/console.h"
#include "engine/types.h"
#include "text/tokenizer/tokenizer.h"

namespace baton {

// Prints one line per token: the id, and the text with invisible characters escaped. Prints the count to stderr.
void PrintTokens(const Console& console, const Tokenizer& tokenizer, const std::vector<TokenId>& ids);

// Prints {"text", "token_ids", "tokens"} in one line. U+FFFD replaces the bytes of a token that are not valid UTF-8.
void PrintTokensAsJson(const Console& console, const Tokenizer& tokenizer, const std::string& text,
                       const std::vector<TokenId>& ids);

}  // namespace baton
