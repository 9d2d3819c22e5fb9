#include "engine/kv/page_hash.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace baton {
namespace {

std::vector<TokenId> Tokens(int count) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 1000);
  return tokens;
}

std::string Hex(const PageHash& hash) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const uint8_t byte : hash) hex += {kDigits[byte >> 4], kDigits[byte & 15]};
  return hex;
}

TEST(PageHashTest, HashesFullPagesOnly) {
  EXPECT_TRUE(HashPages("salt", {}, 16).empty());
  EXPECT_TRUE(HashPages("salt", Tokens(15), 16).empty());
  EXPECT_EQ(HashPages("salt", Tokens(16), 16).size(), 1u);
  EXPECT_EQ(HashPages("salt", Tokens(47), 16).size(), 2u);
}

TEST(PageHashTest, IsSha256OverTheHashBeforeAndLittleEndianTokens) {
  // sha256(sha256("salt") + 01000000 + ffffffff), computed apart.
  const std::vector<TokenId> tokens = {1, -1};
  EXPECT_EQ(Hex(HashPages("salt", tokens, 2).at(0)),
            "fe3824cd7b8e93c33783ee15120a118847a2c0386dec6dab3b5ebec0a35da4eb");
}

TEST(PageHashTest, APrefixHasTheSameHashesWhateverFollows) {
  const auto shorter = HashPages("salt", Tokens(32), 16);
  const auto longer = HashPages("salt", Tokens(64), 16);
  ASSERT_EQ(longer.size(), 4u);
  EXPECT_EQ(shorter[0], longer[0]);
  EXPECT_EQ(shorter[1], longer[1]);
}

TEST(PageHashTest, AChangedTokenChangesItsPageAndAllLaterOnes) {
  std::vector<TokenId> tokens = Tokens(48);
  const auto before = HashPages("salt", tokens, 16);
  tokens[16] ^= 1;
  const auto after = HashPages("salt", tokens, 16);
  EXPECT_EQ(before[0], after[0]);
  EXPECT_NE(before[1], after[1]);
  EXPECT_NE(before[2], after[2]);
}

TEST(PageHashTest, EqualPagesAtDifferentPlacesDiffer) {
  const auto hashes = HashPages("salt", std::vector<TokenId>(8, 7), 4);
  EXPECT_NE(hashes[0], hashes[1]);
}

TEST(PageHashTest, TheSaltSeparatesOwners) {
  EXPECT_NE(HashPages("a", Tokens(4), 4), HashPages("b", Tokens(4), 4));
  // The same characters divided in another way.
  EXPECT_NE(PageHashSalt("ab", "c", ""), PageHashSalt("a", "bc", ""));
  EXPECT_NE(PageHashSalt("m", "x", ""), PageHashSalt("m", "", "x"));
  EXPECT_EQ(PageHashSalt("m", "a", "t"), PageHashSalt("m", "a", "t"));
}

}  // namespace
}  // namespace baton
