// SPDX-License-Identifier: Apache-2.0
#include "common/address.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "common/strings.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::baton::testing::Fails;

TEST(ParseHostPortTest, TakesNamesAndBothFamilies) {
  ASSERT_OK_AND_ASSIGN(HostPort name, ParseHostPort("decode-0.local:50052"));
  EXPECT_EQ(name.host, "decode-0.local");
  EXPECT_EQ(name.port, 50052);
  ASSERT_OK_AND_ASSIGN(HostPort v6, ParseHostPort("[::1]:0"));
  EXPECT_EQ(v6.host, "::1");
  EXPECT_EQ(v6.port, 0);
}

TEST(ParseHostPortTest, RefusesWhatIsNoAddress) {
  for (const char* text : {"", ":", ":80", "host", "host:", "host:x", "host:-1", "host:65536", "::1:80", "[]:80"}) {
    EXPECT_TRUE(Fails(ParseHostPort(text), absl::StatusCode::kInvalidArgument, Concat("\"", text, "\""))) << text;
  }
}

// A socket that listens on a port of the kernel's choice.
class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 1), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { close(fd_); }
  int port() const { return port_; }

 private:
  int fd_;
  int port_ = 0;
};

TEST(CheckCanListenTest, SaysThatAPortIsInUseUntilItIsFree) {
  std::string address;
  {
    const Listener listener;
    address = Concat("127.0.0.1:", listener.port());
    const absl::Status status = CheckCanListen(address);
    EXPECT_TRUE(Fails(status, absl::StatusCode::kUnavailable, address));
    EXPECT_TRUE(Fails(status, absl::StatusCode::kUnavailable, "Address already in use"));
    // One of the addresses that the name stands for is taken.
    EXPECT_FALSE(CheckCanListen(Concat("localhost:", listener.port())).ok());
  }
  EXPECT_OK(CheckCanListen(address));
}

TEST(CheckCanListenTest, RefusesAnAddressOfAnotherMachine) {
  EXPECT_TRUE(Fails(CheckCanListen("192.0.2.1:0"), absl::StatusCode::kUnavailable, "192.0.2.1:0"));
}

}  // namespace
}  // namespace baton
