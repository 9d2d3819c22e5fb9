// Regular expressions in Oniguruma's syntax (Ruby's, which Hugging Face's tokenizers uses), rewritten for PCRE2 where
// the two read the same text differently:
//
// - \s is the Unicode property White_Space, \p{Han} the characters of that script alone, \h a hexadecimal digit, \v a
//   vertical tab, \uHHHH a code point
// - classes nest, and && intersects them: [a[bc]], [\p{L}&&[^\p{Han}]]
// - a{2}+ repeats a{2}, and a{2}? may leave it out; a{,3} is a{0,3}
// - (?m) is what PCRE2 calls (?s); (?i) within a group reaches to the group's end, over its alternatives
//
// A class with && or a negated class within becomes a group: matched over and over it takes memory for each character,
// so that words of some 100,000 reach the limit. Others stay classes.
//
// \w and \b differ in marks and joiners, which is left as it is.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace baton {

// UNIMPLEMENTED says what has no counterpart or nests too deep. What is no regular expression may pass: PCRE2 tells.
absl::StatusOr<std::string> PcreFromOniguruma(std::string_view pattern);

}  // namespace baton
