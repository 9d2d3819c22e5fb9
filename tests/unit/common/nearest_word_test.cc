// SPDX-License-Identifier: Apache-2.0
#include "common/nearest_word.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

const std::vector<std::string> kWords = {"model", "mode", "listen", "kv-dtype"};

TEST(DidYouMean, NamesTheNearestWord) {
  EXPECT_EQ(DidYouMean("modle", kWords, "--"), "; did you mean --model?");
  EXPECT_EQ(DidYouMean("moed", kWords, ""), "; did you mean mode?");
  EXPECT_EQ(DidYouMean("lisen", kWords, "--"), "; did you mean --listen?");
  EXPECT_EQ(DidYouMean("listeen", kWords, "--"), "; did you mean --listen?");
  EXPECT_EQ(DidYouMean("kv-tdype", kWords, "--"), "; did you mean --kv-dtype?");
}

TEST(DidYouMean, CountsASwapOfNeighboursAsOneEdit) {
  // Two letters replaced would be as near as "abba", which comes first.
  EXPECT_EQ(DidYouMean("abcd", {"abba", "abdc"}, ""), "; did you mean abdc?");
}

TEST(DidYouMean, IsSilentWhenNoWordIsNear) {
  EXPECT_EQ(DidYouMean("verbose", kWords, "--"), "");
  EXPECT_EQ(DidYouMean("", kWords, "--"), "");
  EXPECT_EQ(DidYouMean("x", {"ab", "y"}, "--"), "") << "a word of which no letter is left is no suggestion";
  EXPECT_EQ(DidYouMean("model", {}, "--"), "");
}

}  // namespace
}  // namespace baton
