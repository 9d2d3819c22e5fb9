// SPDX-License-Identifier: Apache-2.0
#include "common/metrics_http.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/steady_time.h"
#include "common/strings.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::baton::testing::Fails;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr absl::Duration kReadPatience = absl::Seconds(30);

// A connection to the loopback, closed at the end.
class Client {
 public:
  explicit Client(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience = absl::ToTimeval(kReadPatience);
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void Send(std::string_view bytes) const {
    // The server may have closed already.
    [[maybe_unused]] const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // Until the server closes.
  std::string ReadAll() const {
    std::string answer;
    char buffer[4096];
    for (ssize_t n; (n = read(fd_, buffer, sizeof(buffer))) > 0;) answer.append(buffer, static_cast<size_t>(n));
    return answer;
  }

 private:
  const int fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

std::string Exchange(int port, const std::string& request) {
  const Client client(port);
  client.Send(request);
  return client.ReadAll();
}

absl::StatusOr<std::unique_ptr<MetricsHttp>> ServeText(const std::string& text) {
  return MetricsHttp::Start({.host = "127.0.0.1", .port = 0}, [text] { return text; });
}

TEST(MetricsHttpTest, AnswersAGetWithThePage) {
  ASSERT_OK_AND_ASSIGN(const auto http, ServeText("baton_test_total 3\n"));
  const std::string answer = Exchange(http->port(), "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nbaton_test_total 3\n"));
  EXPECT_THAT(Exchange(http->port(), "GET /metrics?module=x HTTP/1.0\r\n\r\n"), EndsWith("\nbaton_test_total 3\n"));
}

TEST(MetricsHttpTest, AnswersAHeadWithoutThePage) {
  ASSERT_OK_AND_ASSIGN(const auto http, ServeText("baton_test_total 3\n"));
  const std::string answer = Exchange(http->port(), "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 19\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST(MetricsHttpTest, ServesNothingElse) {
  ASSERT_OK_AND_ASSIGN(const auto http, ServeText("secret"));
  for (const std::string path : {"/", "/metrics/", "/metricsx", "//metrics", "/favicon.ico"}) {
    const std::string answer = Exchange(http->port(), Concat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 404")) << path;
    EXPECT_THAT(answer, Not(HasSubstr("secret"))) << path;
  }
  for (const std::string method : {"DELETE", "OPTIONS", "PUT"}) {
    const std::string answer = Exchange(http->port(), Concat(method, " /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 405")) << method;
    EXPECT_THAT(answer, Not(HasSubstr("secret"))) << method;
  }
}

TEST(MetricsHttpTest, GoesOnAfterRequestsThatAreNone) {
  ASSERT_OK_AND_ASSIGN(const auto http, ServeText("page"));
  EXPECT_EQ(Exchange(http->port(), "what is this\r\n\r\n"), "");
  EXPECT_EQ(Exchange(http->port(), Concat("GET /metrics HTTP/1.1\r\nX: ", std::string(1 << 20, 'x'), "\r\n\r\n")), "");
  EXPECT_EQ(Exchange(http->port(), Concat("GET /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc")), "");
  EXPECT_THAT(Exchange(http->port(), "GET /metrics HTTP/1.0\r\n\r\n"), EndsWith("page"));
}

TEST(MetricsHttpTest, ClientsThatSayNothingKeepNobodyOutForLong) {
  ASSERT_OK_AND_ASSIGN(const auto http, ServeText("page"));
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(std::make_unique<Client>(http->port()));
  EXPECT_THAT(Exchange(http->port(), "GET /metrics HTTP/1.0\r\n\r\n"), EndsWith("page"));
}

TEST(MetricsHttpTest, EndsAtOnceWithClientsConnected) {
  ASSERT_OK_AND_ASSIGN(auto http, ServeText("page"));
  const Client silent(http->port());
  const Client slow(http->port());
  slow.Send("GET /met");
  EXPECT_THAT(Exchange(http->port(), "GET /metrics HTTP/1.0\r\n\r\n"), EndsWith("page"));
  const SteadyTime begin = SteadyTime::Now();
  http.reset();
  EXPECT_LT(SteadyTime::Now() - begin, absl::Seconds(1));  // a request may take 5 s
}

TEST(MetricsHttpTest, SaysWhyItCannotListen) {
  ASSERT_OK_AND_ASSIGN(const auto first, ServeText("page"));
  const auto second = MetricsHttp::Start({.host = "127.0.0.1", .port = first->port()}, [] { return ""; });
  EXPECT_TRUE(Fails(second, absl::StatusCode::kUnavailable, Concat("127.0.0.1:", first->port())));
  EXPECT_TRUE(Fails(second, absl::StatusCode::kUnavailable, "already in use"));
}

}  // namespace
}  // namespace baton
