// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/ucx/shared_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "tests/status_matchers.h"

namespace baton {
namespace {

constexpr size_t kBytes = 9 << 20;  // more than one slice of Prefault

TEST(SharedRegion, APutThroughTheMappingIsSeenByTheOwner) {
  ASSERT_OK_AND_ASSIGN(const SharedRegion ours, SharedRegion::Allocate(kBytes));
  ASSERT_OK_AND_ASSIGN(PeerRegion peer, PeerRegion::Map(getpid(), ours.offer(), kBytes));
  const std::string text = "tail";
  peer.Put(kBytes - text.size(), reinterpret_cast<const std::byte*>(text.data()), text.size());
  const char* const data = static_cast<const char*>(ours.memory().data);
  EXPECT_EQ(std::string(data + kBytes - text.size(), text.size()), text);
  EXPECT_EQ(data[0], '\0');
}

TEST(SharedRegion, MemoryOutlivesItsOwnersMapping) {
  ASSERT_OK_AND_ASSIGN(SharedRegion ours, SharedRegion::Allocate(kBytes));
  ASSERT_OK_AND_ASSIGN(PeerRegion peer, PeerRegion::Map(getpid(), ours.offer(), kBytes));
  {
    const SharedRegion gone = std::move(ours);
  }
  peer.Put(0, reinterpret_cast<const std::byte*>("x"), 1);  // must not fault
}

TEST(SharedRegion, OtherMemoryThanWasOfferedIsRefused) {
  ASSERT_OK_AND_ASSIGN(const SharedRegion ours, SharedRegion::Allocate(kBytes));
  ASSERT_OK_AND_ASSIGN(const SharedRegion other, SharedRegion::Allocate(kBytes));
  RegionOffer offer = ours.offer();
  offer.fd = other.offer().fd;
  const auto refused = [](const absl::StatusOr<PeerRegion>& region, const char* why) {
    return testing::Fails(region.status(), absl::StatusCode::kFailedPrecondition, why);
  };
  EXPECT_TRUE(refused(PeerRegion::Map(getpid(), offer, kBytes), "is not the memory that the peer offered"));
  EXPECT_TRUE(refused(PeerRegion::Map(getpid(), ours.offer(), 2 * kBytes), "is not the memory"));
  offer.fd = 1 << 20;
  EXPECT_TRUE(refused(PeerRegion::Map(getpid(), offer, kBytes), "cannot open the peer's memory /proc/"));
}

TEST(SharedRegion, APeerCannotShrinkTheRegion) {
  ASSERT_OK_AND_ASSIGN(const SharedRegion ours, SharedRegion::Allocate(kBytes));
  EXPECT_NE(ftruncate(static_cast<int>(ours.offer().fd), 1), 0);
}

TEST(SharedRegion, PrefaultMapsWhatTheOwnerHasTaken) {
  ASSERT_OK_AND_ASSIGN(const SharedRegion ours, SharedRegion::Allocate(kBytes));
  ASSERT_OK_AND_ASSIGN(PeerRegion early, PeerRegion::Map(getpid(), ours.offer(), kBytes));
  EXPECT_TRUE(early.Prefault());
  EXPECT_FALSE(early.Prefault()) << "the owner has not taken the memory: the rest is left to puts";
  std::memset(ours.memory().data, 1, kBytes);
  ASSERT_OK_AND_ASSIGN(PeerRegion late, PeerRegion::Map(getpid(), ours.offer(), kBytes));
  int slices = 0;
  while (late.Prefault()) ++slices;
  EXPECT_EQ(slices, 3);
}

TEST(SharedRegion, MoreThanTheAddressSpaceIsRefusedWithItsSize) {
  EXPECT_TRUE(testing::Fails(SharedRegion::Allocate(size_t{1} << 60).status(), absl::StatusCode::kResourceExhausted,
                             "1152921504606846976 bytes"));
  EXPECT_TRUE(testing::Fails(SharedRegion::Allocate(0).status(), absl::StatusCode::kInvalidArgument, "0 bytes"));
}

}  // namespace
}  // namespace baton
