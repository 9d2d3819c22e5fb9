// SPDX-License-Identifier: Apache-2.0
#include "worker/orphaned_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "common/file_descriptor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/temp_folder.h"

namespace baton {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class OrphanedMemoryTest : public ::testing::Test {
 protected:
  FileDescriptor Create(const std::string& name) {
    path_ = folder_.path().string() + "/" + name;
    FileDescriptor fd(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(ftruncate(fd.get(), 8192), 0);
    return fd;
  }
  std::vector<OrphanedFile> Remove(absl::Duration min_age = absl::ZeroDuration()) const {
    return RemoveOrphanedMemory({.folder = folder_.path().string(), .min_age = min_age});
  }
  bool Exists() const { return std::filesystem::exists(path_); }

  testing::TempFolder folder_;
  std::string path_;
};

TEST_F(OrphanedMemoryTest, AFileThatNobodyHasOpenIsRemoved) {
  Create("ucx_shm_posix_1a2b3c");  // closed at once
  const std::vector<OrphanedFile> removed = Remove();
  ASSERT_THAT(removed, SizeIs(1));
  EXPECT_EQ(removed[0].path, path_);
  EXPECT_EQ(removed[0].bytes, 8192U);
  EXPECT_FALSE(Exists());
}

TEST_F(OrphanedMemoryTest, AFileThatAProcessHasOpenStays) {
  const FileDescriptor fd = Create("ucx_shm_posix_1a2b3d");
  EXPECT_THAT(Remove(), IsEmpty());
  EXPECT_TRUE(Exists());
}

TEST_F(OrphanedMemoryTest, AFileThatAProcessHasMappedStays) {
  void* mapped = nullptr;
  {
    const FileDescriptor fd = Create("ucx_shm_posix_1a2b3e");
    mapped = mmap(nullptr, 8192, PROT_READ, MAP_SHARED, fd.get(), 0);
    ASSERT_NE(mapped, MAP_FAILED);
  }
  EXPECT_THAT(Remove(), IsEmpty());
  EXPECT_TRUE(Exists());
  munmap(mapped, 8192);
  EXPECT_THAT(Remove(), SizeIs(1));
}

TEST_F(OrphanedMemoryTest, AYoungFileStays) {
  Create("ucx_shm_posix_1a2b3f");
  EXPECT_THAT(Remove(absl::Hours(1)), IsEmpty());
  EXPECT_TRUE(Exists());
}

TEST_F(OrphanedMemoryTest, OtherFilesStay) {
  Create("sem.ucx_shm_posix_1");
  EXPECT_THAT(Remove(), IsEmpty());
  EXPECT_TRUE(Exists());
}

TEST_F(OrphanedMemoryTest, AFolderThatDoesNotExistHasNone) {
  EXPECT_THAT(RemoveOrphanedMemory({.folder = folder_.path().string() + "/none"}), IsEmpty());
}

}  // namespace
}  // namespace baton
