// SPDX-License-Identifier: Apache-2.0
#include "common/ids.h"

#include <string>

#include "absl/hash/hash_testing.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::baton::testing::Fails;

TEST(RequestIdTest, SurvivesTheWire) {
  const RequestId id{.high = 0x0123456789abcdef, .low = 0xfedcba9876543210};
  const std::string bytes = id.ToBytes();
  EXPECT_EQ(bytes, std::string("\x01\x23\x45\x67\x89\xab\xcd\xef\xfe\xdc\xba\x98\x76\x54\x32\x10", 16));
  ASSERT_OK_AND_ASSIGN(const RequestId back, RequestId::FromBytes(bytes));
  EXPECT_EQ(back, id);
  EXPECT_EQ(id.ToString(), "0123456789abcdeffedcba9876543210");
}

TEST(RequestIdTest, RefusesBytesOfAnotherLength) {
  EXPECT_TRUE(Fails(RequestId::FromBytes("short"), absl::StatusCode::kInvalidArgument, "has 5 bytes, expected 16"));
  EXPECT_TRUE(Fails(RequestId::FromBytes(std::string(17, 'x')), absl::StatusCode::kInvalidArgument, "17"));
}

TEST(RequestIdTest, RandomOnesDiffer) { EXPECT_NE(RequestId::Random(), RequestId::Random()); }

TEST(AttemptKeyTest, NamesRequestAndAttempt) {
  const AttemptKey key{.request = {.high = 1, .low = 2}, .attempt = 3};
  EXPECT_EQ(key.ToString(), "00000000000000010000000000000002/3");
  EXPECT_TRUE(
      absl::VerifyTypeImplementsAbslHashCorrectly({key, AttemptKey{.request = key.request, .attempt = 4},
                                                   AttemptKey{.request = {.high = 1, .low = 3}, .attempt = 3}}));
}

}  // namespace
}  // namespace baton
