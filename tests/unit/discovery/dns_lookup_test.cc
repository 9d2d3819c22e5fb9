// SPDX-License-Identifier: Apache-2.0
#include "router/discovery/dns_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "fake_dns.h"
#include "tests/status_matchers.h"

namespace baton::router {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DnsLookupTest : public ::testing::Test {
 protected:
  DnsAnswer Ask(const std::string& entry) { return std::move(AskAll({entry}).front()); }
  std::vector<DnsAnswer> AskAll(const std::vector<std::string>& entries) {
    std::vector<WorkerSource> sources;
    for (const std::string& entry : entries) sources.push_back(ParseWorkerSource(entry).value());
    return LookUp(sources, {.servers = dns_.server(), .timeout = timeout_}, stop_);
  }

  FakeDns dns_;
  EventFd stop_;
  absl::Duration timeout_ = absl::Seconds(30);
};

// The last dot of a name keeps the search domains of the test's machine out.
TEST_F(DnsLookupTest, EachAddressOfANameIsAWorker) {
  dns_.SetAddresses("decode.svc", {"10.0.0.2", "10.0.0.1"});
  ASSERT_OK_AND_ASSIGN(const auto addresses, Ask("dns:///decode.svc.:50071"));
  EXPECT_THAT(addresses, ElementsAre("10.0.0.1:50071", "10.0.0.2:50071"));
}

TEST_F(DnsLookupTest, TheNewerProtocolCountsOnlyWithoutTheOlder) {
  dns_.SetAddresses("both.svc", {"10.0.0.1", "fd00::1"});
  dns_.SetAddresses("six.svc", {"fd00::1"});
  ASSERT_OK_AND_ASSIGN(const auto both, Ask("dns:///both.svc.:1"));
  EXPECT_THAT(both, ElementsAre("10.0.0.1:1"));
  ASSERT_OK_AND_ASSIGN(const auto six, Ask("dns:///six.svc.:1"));
  EXPECT_THAT(six, ElementsAre("[fd00::1]:1"));
}

TEST_F(DnsLookupTest, ServiceRecordsNameHostsAndPorts) {
  dns_.SetServices("_grpc._tcp.decode.svc", {{"d0.svc", 7}, {"d1.svc", 8}, {"not-yet.svc", 9}});
  dns_.SetAddresses("d0.svc", {"10.0.0.1"});
  dns_.SetAddresses("d1.svc", {"fd00::1"});
  ASSERT_OK_AND_ASSIGN(const auto addresses, Ask("dns:///_grpc._tcp.decode.svc."));
  EXPECT_THAT(addresses, ElementsAre("10.0.0.1:7", "[fd00::1]:8"));
}

TEST_F(DnsLookupTest, NamesAreLookedUpSideBySide) {
  dns_.SetAddresses("a.svc", {"10.0.0.1"});
  dns_.SetServices("_s._tcp.b.svc", {{"a.svc", 5}});
  const std::vector<DnsAnswer> answers = AskAll({"dns:///a.svc.:1", "dns:///no.svc.:1", "dns:///_s._tcp.b.svc."});
  EXPECT_THAT(answers[0].value(), ElementsAre("10.0.0.1:1"));
  EXPECT_EQ(answers[1].status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(answers[2].value(), ElementsAre("10.0.0.1:5"));
}

TEST_F(DnsLookupTest, NoRecordsAreNotAFailure) {
  EXPECT_EQ(Ask("dns:///unknown.svc.:1").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Ask("dns:///_s._tcp.unknown.svc.").status().code(), absl::StatusCode::kNotFound);
  dns_.SetServices("other.svc", {{"a.svc", 5}});
  EXPECT_EQ(Ask("dns:///other.svc.:1").status().code(), absl::StatusCode::kNotFound) << "the name has no addresses";
  dns_.SetServices("_s._tcp.idle.svc", {{"unknown.svc", 5}});
  ASSERT_OK_AND_ASSIGN(const auto none, Ask("dns:///_s._tcp.idle.svc."));
  EXPECT_THAT(none, IsEmpty());
}

TEST_F(DnsLookupTest, AServerThatFailsOrIsSilentGivesNoAnswer) {
  dns_.SetAddresses("a.svc", {"10.0.0.1"});
  dns_.Set(FakeDns::Mode::kFails);
  EXPECT_EQ(Ask("dns:///a.svc.:1").status().code(), absl::StatusCode::kUnavailable);
  dns_.Set(FakeDns::Mode::kSilent);
  timeout_ = absl::Milliseconds(50);
  EXPECT_TRUE(testing::Fails(Ask("dns:///a.svc.:1").status(), absl::StatusCode::kUnavailable, "no server answered"));
  EXPECT_EQ(Ask("dns:///_s._tcp.a.svc.").status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(DnsLookupTest, ASignalEndsTheWait) {
  dns_.Set(FakeDns::Mode::kSilent);
  timeout_ = absl::Hours(1);
  stop_.Signal();
  EXPECT_EQ(Ask("dns:///a.svc.:1").status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(DnsLookupTest, AWrongServerIsNamed) {
  const WorkerSource source = ParseWorkerSource("dns:///a:1").value();
  EXPECT_TRUE(testing::Fails(LookUp({&source, 1}, {.servers = "nowhere"}, stop_).front().status(),
                             absl::StatusCode::kInvalidArgument, "nowhere"));
  EXPECT_OK(CheckDnsOptions({.servers = "127.0.0.1,127.0.0.2:53,[::1]:53"}));
}

}  // namespace
}  // namespace baton::router
