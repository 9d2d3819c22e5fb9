// SPDX-License-Identifier: Apache-2.0
#include "text/assets/asset_files.h"

#include <gtest/gtest.h>

#include <string>

namespace baton {
namespace {

TEST(AssetsFingerprint, CoversNamesSizesAndContents) {
  // printf 'a\0\0\0\0\0\0\0\0\1x' | sha256sum
  EXPECT_EQ(AssetsFingerprint({{"a", "x"}}), "d111bd52b5b0762b90ad7eee406879b07483b5f90f397270da284f6b377ff2f6");
  const std::string reference = AssetsFingerprint({{"a", "xy"}, {"b", "z"}});
  EXPECT_NE(reference, AssetsFingerprint({{"a", "x"}, {"b", "yz"}}));
  EXPECT_NE(reference, AssetsFingerprint({{"a", "xy"}, {"c", "z"}}));
  EXPECT_NE(reference, AssetsFingerprint({{"a", "xy"}}));
}

}  // namespace
}  // namespace baton
