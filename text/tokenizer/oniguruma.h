// SPDX-License-Identifier: Apache-2.0
// Translates regular expressions from Oniguruma's Ruby syntax, which Hugging Face's tokenizers use, to PCRE2's. Pure
// function. In Oniguruma's syntax:
//
// - \s is the Unicode property White_Space, \h a hexadecimal digit, \v a vertical tab, \uHHHH a code point
// - \p{Han} excludes characters that several scripts share
// - classes nest and intersect: [a[bc]], [\p{L}&&[^\p{Han}]]
// - a{2}+ repeats a{2}; a{2}? is optional, not lazy; a{,3} is a{0,3}
// - (?m) is PCRE2's (?s); (?i) within a group lasts to the end of the group, across alternatives
//
// A class with && or with a nested negated class becomes a group. A repeated group takes memory per character, so a run
// of about 100,000 characters hits the match limit. Other classes stay classes.
//
// Not translated: \w and \b, which differ for marks and joiners.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace baton {

// UNIMPLEMENTED names a construct without counterpart in PCRE2 or with too deep nesting. Most syntax errors pass
// through; PCRE2 reports them.
absl::StatusOr<std::string> PcreFromOniguruma(std::string_view pattern);

}  // namespace baton
