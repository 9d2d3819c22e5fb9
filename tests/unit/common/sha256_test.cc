// SPDX-License-Identifier: Apache-2.0
#include "common/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace baton {
namespace {

// Vectors of FIPS 180-2.
TEST(Sha256, GivesTheStandardsDigests) {
  Sha256 hash;
  EXPECT_EQ(ToHex(hash.Finish()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  hash.Add("abc");
  EXPECT_EQ(ToHex(hash.Finish()), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, DoesNotDependOnThePieces) {
  Sha256 whole;
  whole.Add(std::string(1000, 'x'));
  Sha256 pieces;
  for (int i = 0; i < 10; ++i) pieces.Add(std::string(100, 'x'));
  EXPECT_EQ(whole.Finish(), pieces.Finish());
}

}  // namespace
}  // namespace baton
