// SPDX-License-Identifier: Apache-2.0
#include "common/metrics.h"

#include <prometheus/counter.h>

#include <string>

#include "common/strings.h"
#include "tests/metrics_page.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::baton::testing::Fails;
using ::baton::testing::MetricsPage;
using ::testing::AnyOf;
using ::testing::StartsWith;

TEST(MetricsServerTest, ServesWhatWasCountedOnAPortOfItsChoice) {
  ASSERT_OK_AND_ASSIGN(auto server, MetricsServer::Start("127.0.0.1:0"));
  ASSERT_GT(server->port(), 0);
  prometheus::BuildCounter().Name("baton_test_total").Help("h").Register(server->registry()).Add({}).Increment(3);
  ASSERT_OK_AND_ASSIGN(const MetricsPage page, MetricsPage::Fetch(server->port()));
  EXPECT_EQ(page.Sum("baton_test_total"), 3);
  EXPECT_EQ(page.Sum("baton_build_info"), 1);
}

TEST(MetricsServerTest, ServesNothingThatIsNeitherOursNorOfEveryProcess) {
  ASSERT_OK_AND_ASSIGN(auto server, MetricsServer::Start("127.0.0.1:0"));
  ASSERT_OK(MetricsPage::Fetch(server->port()).status());
  ASSERT_OK_AND_ASSIGN(const MetricsPage page, MetricsPage::Fetch(server->port()));
  for (const testing::MetricsSeries& series : page.series()) {
    EXPECT_THAT(series.name, AnyOf(StartsWith("baton_"), StartsWith("process_")));
  }
}

TEST(MetricsServerTest, SaysThatAPortIsInUse) {
  ASSERT_OK_AND_ASSIGN(auto first, MetricsServer::Start("127.0.0.1:0"));
  const std::string address = Concat("127.0.0.1:", first->port());
  const auto second = MetricsServer::Start(address);
  EXPECT_TRUE(Fails(second, absl::StatusCode::kUnavailable, address));
  EXPECT_TRUE(Fails(second, absl::StatusCode::kUnavailable, "already in use"));
}

TEST(MetricsServerTest, CollectsWithoutServingWhenThereIsNoAddress) {
  ASSERT_OK_AND_ASSIGN(auto server, MetricsServer::Start(""));
  EXPECT_EQ(server->port(), 0);
  prometheus::BuildCounter().Name("baton_test_total").Register(server->registry()).Add({}).Increment();
  EXPECT_EQ(server->registry().Collect().size(), 1u);
}

TEST(MetricsServerTest, RefusesWhatIsNoAddress) {
  EXPECT_TRUE(Fails(MetricsServer::Start("metrics"), absl::StatusCode::kInvalidArgument, "\"metrics\""));
}

}  // namespace
}  // namespace baton
