// SPDX-License-Identifier: Apache-2.0
#include "text/utf8.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

std::string Repair(std::string_view text) {
  std::string storage;
  return std::string(RepairUtf8(text, storage));
}

TEST(Utf8Test, RepairReturnsValidTextWithoutACopy) {
  const std::string text = "plain, Z\xC3\xBCrich, \xE6\x97\xA5, \xF0\x9F\x8E\x89 and a long ASCII tail";
  std::string storage;
  EXPECT_EQ(RepairUtf8(text, storage).data(), text.data());
}

TEST(Utf8Test, EachMaximalInvalidPartBecomesOneReplacementCharacter) {
  // The first case is the example of the Unicode standard, table 3-8.
  EXPECT_EQ(Repair("a\xF1\x80\x80\xE1\x80\xC2"
                   "b\x80"
                   "c\x80\xBF"
                   "d"),
            "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd");
  EXPECT_EQ(Repair("\xC0\xAF"), "\uFFFD\uFFFD");                      // overlong
  EXPECT_EQ(Repair("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");            // a surrogate
  EXPECT_EQ(Repair("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");  // above U+10FFFF
  EXPECT_EQ(Repair("x\xE2\x82"), "x\uFFFD");                          // incomplete
}

TEST(Utf8Test, AppendLeavesOutAnIncompleteCodePoint) {
  std::string out;
  EXPECT_EQ(AppendRepairedUtf8("ab\xE2\x82", out), 2u);
  EXPECT_EQ(out, "ab");
  out.clear();
  EXPECT_EQ(AppendRepairedUtf8("ab\xE2\x41", out), 4u);
  EXPECT_EQ(out, "ab\uFFFD\x41");
}

TEST(Utf8Test, EveryScalarValueSurvivesARoundTrip) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    AppendUtf8(c, text);
    const Utf8Unit unit = ReadUtf8(text);
    ASSERT_EQ(unit.kind, Utf8Unit::kCodePoint) << static_cast<uint32_t>(c);
    ASSERT_EQ(unit.length, text.size());
    ASSERT_EQ(unit.code_point, c);
  }
}

TEST(Utf8Test, StripsWhiteSpaceFromTheGivenSides) {
  EXPECT_EQ(StripWhiteSpace("\u00A0 a b\u3000", {}), "a b");
  EXPECT_EQ(StripWhiteSpace("\u2003\u00E9 ", {.right = false}), "\u00E9 ");
  EXPECT_EQ(StripWhiteSpace(" \u00E9\u2003", {.left = false}), " \u00E9");
  EXPECT_EQ(StripWhiteSpace(" \u2003", {.left = false}), "");
  EXPECT_EQ(StripWhiteSpace(" a ", {.left = false, .right = false}), " a ");
}

}  // namespace
}  // namespace baton
