// SPDX-License-Identifier: Apache-2.0
#include "router/discovery/discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"
#include "common/steady_time.h"
#include "fake_dns.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"

namespace baton::router {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DiscoveryTest : public ::testing::Test {
 protected:
  DiscoveryTest() {
    options_.interval = absl::Milliseconds(10);
    options_.linger = absl::ZeroDuration();
    options_.dns = {.servers = dns_.server(), .timeout = absl::Milliseconds(200)};
  }

  absl::Status Start() {
    auto started = Discovery::Start(options_, [this](const Discovery::Addresses& addresses) {
      MutexLock lock(mutex_);
      addresses_ = addresses;
      ++changes_;
      changed_.NotifyAll();
    });
    if (started.ok()) discovery_ = *std::move(started);
    return started.status();
  }
  Discovery::Addresses Now() {
    MutexLock lock(mutex_);
    return addresses_;
  }
  // Waits until the list is `expected`, or for long enough to be sure that the list stays another.
  Discovery::Addresses Await(const Discovery::Addresses& expected) {
    const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(30);
    MutexLock lock(mutex_);
    while (addresses_ != expected && changed_.WaitUntil(mutex_, deadline)) {
    }
    return addresses_;
  }
  void AwaitQueries(int more) {
    const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(30);
    const int before = dns_.queries();
    while (dns_.queries() < before + more && SteadyTime::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
    ASSERT_GE(dns_.queries(), before + more);
  }
  // The discovery reads the old file or the new one.
  void Write(const std::string& text) {
    std::ofstream(file_ + ".new") << text;
    std::filesystem::rename(file_ + ".new", file_);
  }
  int changes() {
    MutexLock lock(mutex_);
    return changes_;
  }

  testing::TempFolder folder_;
  const std::string file_ = (folder_.path() / "workers").string();
  FakeDns dns_;
  DiscoveryOptions options_;
  Mutex mutex_;
  CondVar changed_;
  Discovery::Addresses addresses_ ABSL_GUARDED_BY(mutex_);
  int changes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<Discovery> discovery_;
};

TEST_F(DiscoveryTest, FixedAddressesAreThereAtOnceInTheirOrder) {
  options_.workers = {"b:2", "a:1"};
  ASSERT_OK(Start());
  EXPECT_THAT(Now(), ElementsAre("b:2", "a:1"));
}

TEST_F(DiscoveryTest, ANameFollowsItsRecords) {
  options_.workers = {"a:1", "dns:///d.svc.:7"};
  dns_.SetAddresses("d.svc", {"10.0.0.1"});
  ASSERT_OK(Start());
  EXPECT_THAT(Await({"a:1", "10.0.0.1:7"}), ElementsAre("a:1", "10.0.0.1:7"));
  dns_.SetAddresses("d.svc", {"10.0.0.1", "10.0.0.2"});
  EXPECT_THAT(Await({"a:1", "10.0.0.1:7", "10.0.0.2:7"}), ElementsAre("a:1", "10.0.0.1:7", "10.0.0.2:7"));
  dns_.Remove("d.svc");
  EXPECT_THAT(Await({"a:1"}), ElementsAre("a:1"));
}

TEST_F(DiscoveryTest, AnAddressThatDnsNoLongerNamesStaysForTheLinger) {
  options_.workers = {"dns:///d.svc.:7"};
  options_.linger = absl::Hours(1);
  dns_.SetAddresses("d.svc", {"10.0.0.1"});
  ASSERT_OK(Start());
  Await({"10.0.0.1:7"});
  dns_.SetAddresses("d.svc", {"10.0.0.2"});  // a part of the addresses at a time
  EXPECT_THAT(Await({"10.0.0.1:7", "10.0.0.2:7"}), ElementsAre("10.0.0.1:7", "10.0.0.2:7"));
  dns_.Remove("d.svc");
  AwaitQueries(3);
  EXPECT_THAT(Now(), ElementsAre("10.0.0.1:7", "10.0.0.2:7"));
}

TEST_F(DiscoveryTest, TheLingerBeginsWhenDnsAnswersWithoutTheAddress) {
  options_.workers = {"dns:///d.svc.:7"};
  options_.linger = absl::Seconds(2);
  dns_.SetAddresses("d.svc", {"10.0.0.1"});
  ASSERT_OK(Start());
  Await({"10.0.0.1:7"});
  dns_.Set(FakeDns::Mode::kFails);
  absl::SleepFor(options_.linger + absl::Milliseconds(100));
  dns_.SetAddresses("d.svc", {"10.0.0.2"});  // a short answer after a long outage
  dns_.Set(FakeDns::Mode::kAnswers);
  EXPECT_THAT(Await({"10.0.0.1:7", "10.0.0.2:7"}), ElementsAre("10.0.0.1:7", "10.0.0.2:7"));
}

TEST_F(DiscoveryTest, WithoutAnAnswerTheListStays) {
  options_.workers = {"dns:///d.svc.:7"};
  dns_.SetAddresses("d.svc", {"10.0.0.1"});
  ASSERT_OK(Start());
  EXPECT_THAT(Await({"10.0.0.1:7"}), ElementsAre("10.0.0.1:7"));
  for (const FakeDns::Mode mode : {FakeDns::Mode::kFails, FakeDns::Mode::kSilent}) {
    dns_.Set(mode);
    AwaitQueries(8);  // more than one round has
    EXPECT_THAT(Now(), ElementsAre("10.0.0.1:7"));
  }
  dns_.SetAddresses("d.svc", {"10.0.0.2"});
  dns_.Set(FakeDns::Mode::kAnswers);
  EXPECT_THAT(Await({"10.0.0.2:7"}), ElementsAre("10.0.0.2:7"));
}

TEST_F(DiscoveryTest, AnUnchangedListIsReportedOnce) {
  options_.workers = {"dns:///d.svc.:7"};
  dns_.SetAddresses("d.svc", {"10.0.0.1", "10.0.0.2"});
  ASSERT_OK(Start());
  Await({"10.0.0.1:7", "10.0.0.2:7"});
  dns_.SetAddresses("d.svc", {"10.0.0.2", "10.0.0.1"});  // servers rotate their answers
  AwaitQueries(3);
  EXPECT_EQ(changes(), 1);
}

TEST_F(DiscoveryTest, TheFileCountsWhileTheRouterRuns) {
  options_.workers = {"a:1"};
  options_.workers_file = file_;
  Write("b:2\n");
  dns_.SetAddresses("d.svc", {"10.0.0.1"});
  ASSERT_OK(Start());
  EXPECT_THAT(Now(), ElementsAre("a:1", "b:2"));
  Write("a:1\ndns:///d.svc.:7\n");
  EXPECT_THAT(Await({"a:1", "10.0.0.1:7"}), ElementsAre("a:1", "10.0.0.1:7"));
  Write("");
  EXPECT_THAT(Await({"a:1"}), ElementsAre("a:1"));
}

TEST_F(DiscoveryTest, AFileThatIsWrongOrGoneChangesNothing) {
  options_.workers_file = file_;
  options_.workers = {"dns:///d.svc.:7"};  // shows how many rounds there were
  Write("b:2\n");
  ASSERT_OK(Start());
  Write("b:2\nc\n");
  AwaitQueries(3);
  EXPECT_THAT(Now(), ElementsAre("b:2"));
  std::filesystem::remove(file_);
  AwaitQueries(3);
  EXPECT_THAT(Now(), ElementsAre("b:2"));
  Write("c:3\n");
  EXPECT_THAT(Await({"c:3"}), ElementsAre("c:3"));
}

TEST_F(DiscoveryTest, AWrongEntryOrFileIsRefusedAtTheStart) {
  options_.workers = {"nowhere"};
  EXPECT_TRUE(testing::Fails(Start(), absl::StatusCode::kInvalidArgument, "workers: \"nowhere\""));
  options_.workers = {};
  options_.workers_file = file_;
  EXPECT_TRUE(testing::Fails(Start(), absl::StatusCode::kNotFound, "workers-file: " + file_));
  Write("# none\nnowhere\n");
  EXPECT_TRUE(testing::Fails(Start(), absl::StatusCode::kInvalidArgument, "line 2"));
  Write("# none\n");
  EXPECT_OK(Start());
  EXPECT_THAT(Now(), IsEmpty());
}

}  // namespace
}  // namespace baton::router
