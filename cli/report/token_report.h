// What the offline commands tokenize and render share: tokens for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "cli/console/console.h"
#include "engine/types.h"
#include "text/tokenizer/tokenizer.h"

namespace baton {

// One line per token: its id and its text, with what cannot be seen escaped. A count on stderr.
void PrintTokens(const Console& console, const Tokenizer& tokenizer, const std::vector<TokenId>& ids);

// {"text", "token_ids", "tokens"} in one line; tokens that are no text of their own have U+FFFD in it.
void PrintTokensAsJson(const Console& console, const Tokenizer& tokenizer, const std::string& text,
                       const std::vector<TokenId>& ids);

}  // namespace baton
