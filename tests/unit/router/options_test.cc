// SPDX-License-Identifier: Apache-2.0
#include "router/options.h"

#include <gtest/gtest.h>

#include "tests/status_matchers.h"

namespace baton::router {
namespace {

using testing::Fails;

absl::Status Parse(std::vector<const char*> arguments, RouterOptions& options) {
  arguments.insert(arguments.begin(), "baton-router");
  OptionSet set("baton-router", "");
  DescribeOptions(set, options);
  const auto outcome = set.Parse(static_cast<int>(arguments.size()), arguments.data());
  return outcome.ok() ? CheckOptions(options) : outcome.status();
}

TEST(RouterOptionsTest, DefaultsNeedOnlyWorkers) {
  RouterOptions options;
  ASSERT_OK(Parse({"--workers", "127.0.0.1:1,127.0.0.1:2"}, options));
  EXPECT_EQ(options.discovery.workers, (std::vector<std::string>{"127.0.0.1:1", "127.0.0.1:2"}));
  EXPECT_EQ(options.peer_timeout, absl::Seconds(3));
}

TEST(RouterOptionsTest, RefusesWhatDoesNotFitTogetherByName) {
  RouterOptions none;
  EXPECT_TRUE(Fails(Parse({}, none), absl::StatusCode::kInvalidArgument, "workers: none given"));
  RouterOptions twice;
  EXPECT_TRUE(Fails(Parse({"--workers", "a:1,a:1"}, twice), absl::StatusCode::kInvalidArgument, "a:1 is listed twice"));
  RouterOptions address;
  EXPECT_TRUE(Fails(Parse({"--workers", "nowhere"}, address), absl::StatusCode::kInvalidArgument, "workers: "));
  RouterOptions dns;
  EXPECT_TRUE(Fails(Parse({"--workers", "a:1", "--dns-servers", "nowhere"}, dns), absl::StatusCode::kInvalidArgument,
                    "dns-servers: nowhere"));
  RouterOptions listen;
  EXPECT_TRUE(Fails(Parse({"--workers", "a:1", "--listen", "nowhere"}, listen), absl::StatusCode::kInvalidArgument,
                    "listen: "));
  RouterOptions metrics;
  EXPECT_TRUE(Fails(Parse({"--workers", "a:1", "--metrics-listen", "nowhere"}, metrics),
                    absl::StatusCode::kInvalidArgument, "metrics-listen: "));
  RouterOptions no_metrics;
  EXPECT_OK(Parse({"--workers", "a:1", "--metrics-listen", ""}, no_metrics));
  RouterOptions heartbeat;
  EXPECT_TRUE(Fails(Parse({"--workers", "a:1", "--heartbeat-interval", "2s"}, heartbeat),
                    absl::StatusCode::kInvalidArgument, "heartbeat-interval"));
  RouterOptions objectives;
  EXPECT_TRUE(Fails(Parse({"--workers", "a:1", "--model-slo", "m=1s/1s,n=fast"}, objectives),
                    absl::StatusCode::kInvalidArgument, "model-slo: n=fast; expected MODEL=TTFT/TPOT"));
  RouterOptions bytes;
  EXPECT_TRUE(Fails(Parse({"--workers", "a:1", "--max-message-bytes", "2GiB"}, bytes),
                    absl::StatusCode::kInvalidArgument, "max-message-bytes"));
}

}  // namespace
}  // namespace baton::router
