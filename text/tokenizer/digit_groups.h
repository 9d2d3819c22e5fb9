// Numbers cut into groups of three digits from the right, as 12,345,678: what some models' patterns do by looking ahead
// to the end of the number from every place in it, which takes time that grows with the square of its length. The same,
// in one pass.
#pragma once

#include <memory>
#include <string_view>

#include "text/tokenizer/pre_tokenizer.h"

namespace baton {

// What splits as `pattern` does with matches Isolated, when it is one of those patterns; else null.
std::unique_ptr<PreTokenizer> DigitGroups(std::string_view pattern);

}  // namespace baton
