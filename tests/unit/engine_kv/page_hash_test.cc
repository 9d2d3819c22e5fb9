// SPDX-License-Identifier: Apache-2.0
#include "engine/kv/page_hash.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace baton {
namespace {

std::vector<TokenId> Tokens(int count) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 1000);
  return tokens;
}

std::vector<PageHash> HashPages(std::span<const TokenId> tokens, int page_tokens,
                                const PageHash& root = PageHashRoot("model", "", "")) {
  std::vector<PageHash> hashes;
  ExtendPageHashes(root, tokens, page_tokens, hashes);
  return hashes;
}

std::string Hex(const PageHash& hash) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const uint8_t byte : hash) hex += {kDigits[byte >> 4], kDigits[byte & 15]};
  return hex;
}

TEST(PageHashTest, HashesFullPagesOnly) {
  EXPECT_TRUE(HashPages({}, 16).empty());
  EXPECT_TRUE(HashPages(Tokens(15), 16).empty());
  EXPECT_EQ(HashPages(Tokens(16), 16).size(), 1u);
  EXPECT_EQ(HashPages(Tokens(47), 16).size(), 2u);
}

TEST(PageHashTest, IsSha256OverTheHashBeforeAndLittleEndianTokens) {
  // sha256(sha256("baton page hash 1" + the lengths and texts of "model", "" and "") + 01000000 + ffffffff), computed
  // apart.
  const std::vector<TokenId> tokens = {1, -1};
  EXPECT_EQ(Hex(HashPages(tokens, 2).at(0)), "39a7fa707847e39e8ca501d811bf4c20b19a75c3c920064f090eddc2f02c3828");
}

TEST(PageHashTest, APrefixHasTheSameHashesWhateverFollows) {
  const auto shorter = HashPages(Tokens(32), 16);
  const auto longer = HashPages(Tokens(64), 16);
  ASSERT_EQ(longer.size(), 4u);
  EXPECT_EQ(shorter[0], longer[0]);
  EXPECT_EQ(shorter[1], longer[1]);
}

TEST(PageHashTest, PagesOfEveryKvGroupHaveTheirOwnNames) {
  const auto alone = HashPages(Tokens(40), 16);
  std::vector<PageHash> grouped;
  ExtendPageHashes(PageHashRoot("model", "", ""), Tokens(20), 16, grouped, /*groups=*/3);
  ASSERT_EQ(grouped.size(), 3u);
  ExtendPageHashes(PageHashRoot("model", "", ""), Tokens(40), 16, grouped, /*groups=*/3);
  ASSERT_EQ(grouped.size(), 6u);
  EXPECT_EQ(grouped[0], alone[0]) << "routers know the first group's pages by the hash of the tokens";
  EXPECT_EQ(grouped[3], alone[1]);
  EXPECT_EQ(std::set<PageHash>(grouped.begin(), grouped.end()).size(), 6u);
}

TEST(PageHashTest, AChangedTokenChangesItsPageAndAllLaterOnes) {
  std::vector<TokenId> tokens = Tokens(48);
  const auto before = HashPages(tokens, 16);
  tokens[16] ^= 1;
  const auto after = HashPages(tokens, 16);
  EXPECT_EQ(before[0], after[0]);
  EXPECT_NE(before[1], after[1]);
  EXPECT_NE(before[2], after[2]);
}

TEST(PageHashTest, EqualPagesAtDifferentPlacesDiffer) {
  const auto hashes = HashPages(std::vector<TokenId>(8, 7), 4);
  EXPECT_NE(hashes[0], hashes[1]);
}

TEST(PageHashTest, AChainCanBeExtended) {
  std::vector<PageHash> hashes;
  for (const int tokens : {3, 4, 11, 16}) {
    ExtendPageHashes(PageHashRoot("model", "", ""), Tokens(tokens), 4, hashes);
    EXPECT_EQ(hashes, HashPages(Tokens(tokens), 4));
  }
}

TEST(PageHashTest, TheRootSeparatesOwners) {
  EXPECT_NE(HashPages(Tokens(4), 4, PageHashRoot("a", "", "")), HashPages(Tokens(4), 4, PageHashRoot("b", "", "")));
  // The same characters divided in another way.
  EXPECT_NE(PageHashRoot("ab", "c", ""), PageHashRoot("a", "bc", ""));
  EXPECT_NE(PageHashRoot("m", "x", ""), PageHashRoot("m", "", "x"));
  EXPECT_EQ(PageHashRoot("m", "a", "t"), PageHashRoot("m", "a", "t"));
}

}  // namespace
}  // namespace baton
