// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/handoff/seen_attempts.h"

#include <gtest/gtest.h>

namespace baton::handoff {
namespace {

AttemptKey Seen(uint64_t request, uint32_t attempt) { return {.request = {0, request}, .attempt = attempt}; }

TEST(SeenAttemptsTest, ForgetsTheRequestSeenLongestAgo) {
  SeenAttempts seen(2);
  EXPECT_TRUE(seen.Admit(Seen(1, 5)));
  EXPECT_TRUE(seen.Admit(Seen(2, 5)));
  EXPECT_FALSE(seen.Admit(Seen(1, 5)));
  EXPECT_FALSE(seen.Admit(Seen(1, 4)));
  EXPECT_TRUE(seen.Admit(Seen(3, 5)));
  EXPECT_TRUE(seen.Admit(Seen(1, 4))) << "forgotten";
  EXPECT_FALSE(seen.Admit(Seen(3, 5)));
}

TEST(SeenAttemptsTest, RemembersAsManyRequestsAsItMayAndTheLatestAttemptOfEach) {
  constexpr uint64_t kMax = 3;
  SeenAttempts seen(kMax);
  for (uint64_t request = 1; request <= 10; ++request) {
    EXPECT_TRUE(seen.Admit(Seen(request, 5)));
    EXPECT_TRUE(seen.Admit(Seen(request, 8)));
    for (uint64_t recent = request < kMax ? 1 : request - kMax + 1; recent <= request; ++recent) {
      EXPECT_FALSE(seen.Admit(Seen(recent, 7))) << recent << " after " << request;
    }
  }
  EXPECT_TRUE(seen.Admit(Seen(7, 1))) << "it was forgotten when 10 came";
}

}  // namespace
}  // namespace baton::handoff
