// SPDX-License-Identifier: Apache-2.0
#include "router/objectives.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/status_matchers.h"

namespace baton::router {
namespace {

using testing::Fails;

constexpr Objectives kOthers{absl::Seconds(2), absl::Milliseconds(50)};

TEST(DefaultObjectivesTest, AModelHasItsOwnOrThoseOfAllOthers) {
  const std::vector<std::string> entries = {"org/a=b:7B=500ms/30ms", "offline=0/0"};
  ASSERT_OK_AND_ASSIGN(const DefaultObjectives defaults, DefaultObjectives::Parse(kOthers, entries));
  EXPECT_EQ(defaults.Of("org/a=b:7B").ttft, absl::Milliseconds(500));
  EXPECT_EQ(defaults.Of("org/a=b:7B").tpot, absl::Milliseconds(30));
  EXPECT_FALSE(defaults.Of("offline").any());
  EXPECT_EQ(defaults.Of("org/a").ttft, kOthers.ttft);
  EXPECT_EQ(defaults.Of("").tpot, kOthers.tpot);
}

TEST(DefaultObjectivesTest, RefusesAnEntryByName) {
  for (const char* entry :
       {"", "m", "m=1s", "=1s/1s", "m=1s/", "m=/1s", "m=1s/fast", "m=-1s/1s", "m=2h/1s", "a/b=1s"}) {
    const std::vector<std::string> entries = {"n=1s/1s", entry};
    EXPECT_TRUE(Fails(DefaultObjectives::Parse(kOthers, entries), absl::StatusCode::kInvalidArgument,
                      std::string(entry) + "; expected MODEL=TTFT/TPOT"));
  }
  const std::vector<std::string> twice = {"m=1s/1s", "m=2s/2s"};
  EXPECT_TRUE(Fails(DefaultObjectives::Parse(kOthers, twice), absl::StatusCode::kInvalidArgument,
                    "m=2s/2s: the model has another entry"));
}

}  // namespace
}  // namespace baton::router
