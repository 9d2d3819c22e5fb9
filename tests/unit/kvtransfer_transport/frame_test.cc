// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/ucx/frame.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "kvtransfer/ucx/host_identity.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

TEST(Frame, HeadersOfAnotherSizeOrTypeAreNone) {
  FrameHeader header{.session = 1, .sequence = 2, .type = FrameType::kPut, .a = 3, .b = 4};
  const auto parsed = ParseHeader(AsPayload(header));
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->b, 4U);
  EXPECT_FALSE(ParseHeader(AsPayload(header).substr(1)).has_value());
  EXPECT_FALSE(ParseHeader("").has_value());
  for (const uint32_t type : {0U, static_cast<uint32_t>(FrameType::kUnmapped) + 1, ~0U}) {
    header.type = static_cast<FrameType>(type);
    EXPECT_FALSE(ParseHeader(AsPayload(header)).has_value());
  }
}

TEST(Frame, OffersSurviveTheirEncoding) {
  const RegionOffer offer{.fd = 3, .device = 4, .inode = 5};
  const auto parsed = FromPayload<RegionOffer>(AsPayload(offer));
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->fd, offer.fd);
  EXPECT_EQ(parsed->device, offer.device);
  EXPECT_EQ(parsed->inode, offer.inode);
}

TEST(Frame, OffersOfAnotherLengthAreRefused) {
  const std::string good(AsPayload(RegionOffer{}));
  for (size_t bytes = 0; bytes < good.size(); ++bytes)
    EXPECT_FALSE(FromPayload<RegionOffer>(good.substr(0, bytes)).has_value());
  EXPECT_FALSE(FromPayload<RegionOffer>(good + "x").has_value());
}

TEST(HostIdentity, ThisProcessSharesAHostWithItself) {
  const Identity ours = LocalIdentity();
  EXPECT_OK(CheckSameHost(ours, ours));
  EXPECT_EQ(ours.pid, static_cast<uint64_t>(getpid()));
  EXPECT_EQ(FromPayload<Identity>(AsPayload(ours))->start_time, ours.start_time);
  EXPECT_FALSE(FromPayload<Identity>("short").has_value());
}

TEST(HostIdentity, OtherHostsAndNamespacesAreToldApart) {
  const Identity ours = LocalIdentity();
  Identity theirs = ours;
  theirs.boot_id[0] ^= 1;
  EXPECT_TRUE(testing::Fails(CheckSameHost(ours, theirs), absl::StatusCode::kFailedPrecondition, "another host"));
  theirs = ours;
  theirs.pid_namespace += 1;
  EXPECT_TRUE(testing::Fails(CheckSameHost(ours, theirs), absl::StatusCode::kFailedPrecondition, "pid namespace"));
}

TEST(ProcessWatch, SeesThatAProcessIsDead) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const Identity ours = LocalIdentity();
  // The child was born after us: our start time is not its.
  EXPECT_TRUE(testing::Fails(ProcessWatch::Open(child, ours.start_time + 1'000'000), absl::StatusCode::kNotFound,
                             "not the peer"));
  ASSERT_OK_AND_ASSIGN(const ProcessWatch self, ProcessWatch::Open(ours.pid, ours.start_time));
  EXPECT_FALSE(self.Dead());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(ProcessWatch::Open(child, ours.start_time).ok());
  EXPECT_FALSE(ProcessWatch::Open(0, 0).ok());
  EXPECT_FALSE(ProcessWatch::Open(~uint64_t{0}, 0).ok());
}

}  // namespace
}  // namespace baton
