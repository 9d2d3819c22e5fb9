#include "common/metrics.h"

#include <arpa/inet.h>
#include <prometheus/counter.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "common/strings.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::baton::testing::Fails;
using ::testing::HasSubstr;

// What a plain GET of /metrics answers.
std::string Scrape(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
    EXPECT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
    char buffer[4096];
    for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;) answer.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  return answer;
}

TEST(MetricsServerTest, ServesWhatWasCountedOnAPortOfItsChoice) {
  ASSERT_OK_AND_ASSIGN(auto server, MetricsServer::Start("127.0.0.1:0"));
  ASSERT_GT(server->port(), 0);
  prometheus::BuildCounter().Name("baton_test_total").Help("h").Register(server->registry()).Add({}).Increment(3);
  const std::string answer = Scrape(server->port());
  EXPECT_THAT(answer, HasSubstr("200 OK"));
  EXPECT_THAT(answer, HasSubstr("\nbaton_test_total 3"));
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

TEST(LatencyBucketsTest, ResolveMillisecondsAndMinutesAlike) {
  const auto buckets = LatencyBuckets();
  ASSERT_TRUE(std::is_sorted(buckets.begin(), buckets.end()));
  for (const double seconds : {0.005, 0.05, 0.5, 5.0, 60.0}) {
    const auto above = std::lower_bound(buckets.begin(), buckets.end(), seconds);
    ASSERT_NE(above, buckets.end());
    EXPECT_LE(*above / *(above - 1), 1.5 + 1e-9) << seconds;
  }
}

}  // namespace
}  // namespace baton
