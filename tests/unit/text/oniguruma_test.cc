// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/oniguruma.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/status_matchers.h"
#include "text/tokenizer/regex.h"
#include "text/utf8.h"

namespace baton {
namespace {

using absl::StatusCode;
using testing::Fails;

std::string Translated(std::string_view pattern) {
  const absl::StatusOr<std::string> result = PcreFromOniguruma(pattern);
  return result.ok() ? *result : std::string(result.status().message());
}

// Returns the matches, separated by "|".
std::string Matches(std::string_view pattern, std::string_view text) {
  const absl::StatusOr<Regex> regex = Regex::Compile(pattern, Regex::Syntax::kPattern);
  if (!regex.ok()) return std::string(regex.status().message());
  Regex::Matcher matcher(*regex);
  std::string matches;
  for (size_t from = 0; from < text.size();) {
    const auto match = matcher.Find(text, from);
    if (!match.ok()) return std::string(match.status().message());
    if (!*match) break;
    const std::string_view found = text.substr((*match)->begin, (*match)->end - (*match)->begin);
    if (!found.empty()) matches += (matches.empty() ? "" : "|") + std::string(found);
    from = (*match)->end;
    if (found.empty() && from < text.size()) from += ReadUtf8(text.substr(from)).length;
  }
  return matches;
}

TEST(OnigurumaTest, KeepsPatternsThatMeanTheSameInPcre) {
  for (const char* same :
       {"", R"((?i:'s|'t)|[^\r\n\p{L}\p{N}]?+\p{L}++| ?[!"#\-./\[\]^_`{|}~]*+|\p{N}{1,3}?|a{2,}|a{2})",
        R"((?<![^a\r\n])(?<=b)(?!c)(?=d)(?>e)(?<name>f)\k<name>(g)\1\b\d\w{x}{,}{1)", "[[:alpha:]_]中[一-龥]",
        R"(\x41\x{4e00}\101[\x41-\x{4e00}])"}) {
    EXPECT_EQ(Translated(same), same);
  }
  EXPECT_EQ(Translated("[]a][^]a][-a-][.]"), R"([\]a][^\]a][\-a\-][\.])") << "equivalent, with escapes";
}

TEST(OnigurumaTest, TranslatesEscapes) {
  EXPECT_EQ(Translated(R"(\s\S[\s\S])"), R"(\p{White_Space}\P{White_Space}[\p{White_Space}\P{White_Space}])");
  EXPECT_EQ(Translated(R"(\p{Han}\P{^Han}[\p{Latin}\p{Lu}]\p{L}\pL)"),
            R"(\p{sc:Han}\P{^sc:Han}[\p{sc:Latin}\p{Lu}]\p{L}\pL)");
  EXPECT_EQ(Translated(R"(\u4E00[\u0041-\u005a])"), R"(\x{4E00}[\x{0041}-\x{005a}])");
  EXPECT_EQ(Matches(R"(\h+|\H+)", "ab 12 xyz"), "ab| |12| xyz");
  EXPECT_EQ(Matches(R"([\hx]+|[^\hx]+|.)", "ab 12 xyz"), "ab| |12| |x|yz");
  EXPECT_EQ(Matches(R"([\H1]+|.)", "ab 12 xyz"), "a|b| 1|2| xyz");
  EXPECT_EQ(Matches(R"(\Qa\E\v)", "QaE\v"), "QaE\v");
}

TEST(OnigurumaTest, TranslatesNestedClasses) {
  EXPECT_EQ(Translated("[a[bc]]"), "[abc]");
  EXPECT_EQ(Matches("[a[bc]]+|.", "abcabd]"), "abcab|d|]");
  EXPECT_EQ(Translated("[^a[b[c]]]"), "[^abc]");
  EXPECT_EQ(Translated("[a[^bc]]"), "(?:[a]|[^bc])");
  EXPECT_EQ(Matches("[^a[^bc]]+", "abcad"), "bc");
  EXPECT_EQ(Translated("[a-[b-]c[-d]]"), R"([a\-b\-c\-d])") << "a '-' beside a nested class is literal";
  EXPECT_EQ(Matches("[^[^a]-]+", "ab-c"), "a");
  EXPECT_EQ(Matches("[[^a]^]+", "^ba^"), "^b|^");
  // BLOOM's pattern. The inner bracket begins a nested class, probably by accident.
  EXPECT_EQ(Matches(R"( ?[^(\s|[.,!?…。，、।۔،])]+)", "Hello, (big) world。好的"), "Hello|big| world|好的");
}

TEST(OnigurumaTest, TranslatesIntersectionsOfClasses) {
  EXPECT_EQ(Translated("[a-z&&[^e]&&[d-f]]"), "(?:(?=[^e])(?=[d-f])[a-z])");
  EXPECT_EQ(Translated("[^a-z&&d-f]"), "(?:(?!(?=[d-f])[a-z])(?s:.))");
  EXPECT_EQ(Matches("[^a-z&&d-f]+", "cdef\ng"), "c|\ng");
  EXPECT_EQ(Matches("[a-c&&^b]+|.", "ab^c"), "a|b|^|c");
  constexpr std::string_view kKimiUpper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)";
  constexpr std::string_view kKimiLower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)";
  const std::string kimi = R"([^\r\n\p{L}\p{N}]?)" + std::string(kKimiUpper) + std::string(kKimiLower) +
                           R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}+|.)";
  EXPECT_EQ(Matches(kimi, "Hello world 12"), "Hello| world| |12");
  EXPECT_EQ(Matches(kimi, "I'm fine"), "I|'m| fine");
  EXPECT_EQ(Matches(kimi, "été中国"), "été|中|国");
}

TEST(OnigurumaTest, TranslatesStackedQuantifiers) {
  EXPECT_EQ(Translated("a{1,2}+"), "(?:a{1,2})+");
  EXPECT_EQ(Translated("(a|b){2}?"), "(?:(a|b){2})?");
  EXPECT_EQ(Translated("a{,3}b{2,}?"), "a{0,3}b{2,}?");
  EXPECT_EQ(Translated("xa+?+[b]{2}*(?:c)++*"), "x(?:a+?)+(?:[b]{2})*(?:(?:c)++)*");
  EXPECT_EQ(Translated(R"(\p{L}{2}+\x41{2}+中{2}+)"), R"((?:\p{L}{2})+(?:\x41{2})+(?:中{2})+)");
  EXPECT_EQ(Translated("((a){2}|b){2}+"), "(?:((a){2}|b){2})+");
  EXPECT_EQ(Matches(R"(\p{N}{1,3}+|\p{L}+)", "1234567ab"), "1234567|ab");
}

TEST(OnigurumaTest, TranslatesOptions) {
  EXPECT_EQ(Translated("(?m:a.)(?m-i:.)"), "(?s:a.)(?s-i:.)");
  EXPECT_EQ(Translated("(?m)."), "(?s:.)");
  EXPECT_EQ(Translated("(a(?i)b|c)d"), "(a(?i:b|c))d");
  EXPECT_EQ(Matches("(?m)a.b", "a\nb"), "a\nb");
  EXPECT_EQ(Matches("a.b", "a\nb"), "");
  EXPECT_EQ(Matches("(?#no|thing)a(?#x){2}", "aaa"), "aa");
}

TEST(OnigurumaTest, RefusesConstructsWithoutCounterpart) {
  const auto deep = [](const char* open) {
    std::string pattern;
    for (int i = 0; i < 1000; ++i) pattern += open;
    return pattern;
  };
  EXPECT_TRUE(Fails(PcreFromOniguruma("[a&&]"), StatusCode::kUnimplemented, "an empty operand of &&"));
  EXPECT_TRUE(Fails(PcreFromOniguruma("(?x) a"), StatusCode::kUnimplemented, "the option x"));
  EXPECT_TRUE(Fails(PcreFromOniguruma("(*NO_JIT)a"), StatusCode::kUnimplemented, "'(*'"));
  EXPECT_TRUE(Fails(PcreFromOniguruma(deep("[a")), StatusCode::kUnimplemented, "classes nested deeper than 100"));
  EXPECT_TRUE(Fails(PcreFromOniguruma(deep("(")), StatusCode::kUnimplemented, "groups nested deeper than 100"));
  EXPECT_TRUE(Fails(PcreFromOniguruma(deep("(?i)")), StatusCode::kUnimplemented, "more than 100 options"));
  EXPECT_TRUE(
      Fails(PcreFromOniguruma("a" + deep("{1}")), StatusCode::kUnimplemented, "more than 100 stacked quantifiers"));
  for (const char* wrong :
       {"[a", "[a[b]", "(", ")", "\\", "\\p", "\\p{", "\\x{", "\\k<", "(?", "(?i", "a**{", "*", "\\u1"}) {
    Regex::Compile(wrong, Regex::Syntax::kPattern).IgnoreError();
  }
  EXPECT_TRUE(Fails(Regex::Compile("[a", Regex::Syntax::kPattern), StatusCode::kInvalidArgument, "expected ']'"));
}

TEST(OnigurumaTest, RunsOf100000CharactersStayWithinTheLimits) {
  const std::string word(100'000, 'a');
  for (const char* pattern : {R"([\p{Ll}\p{Lo}&&[^\p{Han}]]+)", R"([^\s[^a-z]]+)", R"([A[^A-Z]]+)", R"(\p{L}{1,3}+)"}) {
    EXPECT_TRUE(Matches(pattern, word) == word) << pattern;
  }
}

}  // namespace
}  // namespace baton
