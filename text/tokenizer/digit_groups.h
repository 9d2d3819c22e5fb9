// SPDX-License-Identifier: Apache-2.0
// Splits numbers into groups of three digits from the right, like 12|345|678. Some models do this with a pattern whose
// lookahead takes quadratic time in the number of digits; this pre-tokenizer takes linear time.
#pragma once

#include <memory>
#include <string_view>

#include "text/tokenizer/pre_tokenizer.h"

namespace baton {

// Returns a pre-tokenizer that splits like `pattern` with behavior Isolated. Returns null when `pattern` is not a known
// pattern for digit groups.
std::unique_ptr<PreTokenizer> DigitGroups(std::string_view pattern);

}  // namespace baton
