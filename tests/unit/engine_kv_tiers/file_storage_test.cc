// SPDX-License-Identifier: Apache-2.0
#include "engine/kv/tiers/file_storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/status_matchers.h"
#include "tests/temp_folder.h"

namespace baton::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kFilePageBytes = 6000;  // no multiple of the alignment

// Aligned as O_DIRECT wants.
class Buffer {
 public:
  explicit Buffer(int value) : data_(static_cast<std::byte*>(std::aligned_alloc(kStorageAlignment, bytes()))) {
    std::memset(data_, value, bytes());
  }
  Buffer(const Buffer&) = delete;
  ~Buffer() { std::free(data_); }
  static size_t bytes() { return StorageBytes(kFilePageBytes); }
  std::span<std::byte> span() { return {data_, bytes()}; }
  int first() const { return static_cast<int>(data_[0]); }
  int last() const { return static_cast<int>(data_[kFilePageBytes - 1]); }

 private:
  std::byte* const data_;
};

PageRecord Record(uint8_t letter) {
  Buffer content(letter);
  PageRecord record{.name = {letter}, .parent = {}, .checksum = ChecksumOf(content.span())};
  if (letter > 1) record.parent = PageHash{static_cast<uint8_t>(letter - 1)};
  return record;
}

class FileStorageTest : public ::testing::Test {
 protected:
  FileStorageOptions Options(uint64_t bytes = 100'000) const {
    return {.path = path(), .bytes = bytes, .page_bytes = kFilePageBytes, .content = "model a; 16 tokens of bf16"};
  }
  std::string path() const { return (folder_.path() / "tier").string(); }
  static void Write(FileStorage& storage, uint32_t slot, uint8_t letter) {
    Buffer content(letter);
    EXPECT_OK(storage.Write(slot, Record(letter), content.span()));
  }
  static std::vector<uint32_t> Slots(const std::vector<RestoredPage>& pages) {
    std::vector<uint32_t> slots;
    for (const RestoredPage& page : pages) slots.push_back(page.slot);
    return slots;
  }
  // A file with the pages 1, 2 and 3 in the slots 0, 1 and 2.
  void MakeFile() const {
    ASSERT_OK_AND_ASSIGN(const auto storage, FileStorage::Open(Options()));
    for (uint8_t letter = 1; letter <= 3; ++letter) Write(*storage, letter - 1, letter);
  }
  void Patch(std::streamoff offset, std::string_view bytes) const {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    ASSERT_TRUE(file.good());
  }

  TempFolder folder_;
};

TEST_F(FileStorageTest, TakesItsWholeSizeAtOnceAndNoMore) {
  ASSERT_OK_AND_ASSIGN(const auto storage, FileStorage::Open(Options()));
  EXPECT_EQ(storage->slots(), 11u);  // (100000 - 8192) / 8192
  EXPECT_LE(std::filesystem::file_size(path()), 100'000u);
  EXPECT_GT(std::filesystem::file_size(path()), 100'000u - 8192);
  for (uint32_t slot = 0; slot < storage->slots(); ++slot) Write(*storage, slot, static_cast<uint8_t>(slot + 1));
  EXPECT_LE(std::filesystem::file_size(path()), 100'000u);
  Buffer content(0);
  for (uint32_t slot = 0; slot < storage->slots(); ++slot) {
    ASSERT_OK(storage->Read(slot, content.span()));
    EXPECT_EQ(content.first(), static_cast<int>(slot) + 1);
    EXPECT_EQ(content.last(), static_cast<int>(slot) + 1);
  }
}

TEST_F(FileStorageTest, ALaterProcessFindsThePagesInTheOrderOfTheirWrites) {
  {
    ASSERT_OK_AND_ASSIGN(const auto storage, FileStorage::Open(Options()));
    EXPECT_THAT(storage->Restore(), IsEmpty());
    Write(*storage, 5, 1);
    Write(*storage, 2, 2);
    Write(*storage, 5, 3);  // replaces 1
  }
  {
    ASSERT_OK_AND_ASSIGN(const auto storage, FileStorage::Open(Options()));
    EXPECT_EQ(storage->started_afresh(), "");
    const std::vector<RestoredPage> pages = storage->Restore();
    ASSERT_THAT(Slots(pages), ElementsAre(2, 5));
    EXPECT_EQ(pages[0].record, Record(2));
    EXPECT_EQ(pages[1].record, Record(3));
    Write(*storage, 7, 4);
  }
  ASSERT_OK_AND_ASSIGN(const auto storage, FileStorage::Open(Options()));
  EXPECT_THAT(Slots(storage->Restore()), ElementsAre(2, 5, 7)) << "the number of a write goes on after a restart";
}

TEST_F(FileStorageTest, AFileOfAnotherModelLayoutOrSizeStartsAfreshAndSaysWhy) {
  MakeFile();
  FileStorageOptions other = Options();
  other.content = "model b; 16 tokens of bf16";
  {
    ASSERT_OK_AND_ASSIGN(const auto storage, FileStorage::Open(other));
    EXPECT_THAT(storage->started_afresh(), HasSubstr("\"model a; 16 tokens of bf16\""));
    EXPECT_THAT(storage->started_afresh(), HasSubstr("\"model b; 16 tokens of bf16\""));
    EXPECT_THAT(storage->Restore(), IsEmpty());
    Write(*storage, 0, 9);
  }
  other.bytes = 200'000;
  {
    ASSERT_OK_AND_ASSIGN(const auto storage, FileStorage::Open(other));
    EXPECT_THAT(storage->started_afresh(), HasSubstr("made with"));
    EXPECT_THAT(storage->Restore(), IsEmpty());
    Write(*storage, 0, 9);
  }
  Patch(16, std::string_view("\x02\0\0\0", 4));
  ASSERT_OK_AND_ASSIGN(const auto storage, FileStorage::Open(other));
  EXPECT_THAT(storage->started_afresh(), HasSubstr("version 2, this worker writes version 1"));
}

TEST_F(FileStorageTest, ADamagedHeaderStartsAfresh) {
  MakeFile();
  Patch(40, "x");
  ASSERT_OK_AND_ASSIGN(const auto storage, FileStorage::Open(Options()));
  EXPECT_EQ(storage->started_afresh(), "the header is damaged");
  EXPECT_THAT(storage->Restore(), IsEmpty());
}

TEST_F(FileStorageTest, AFileThatIsNoTierIsRefusedAndStaysAsItIs) {
  folder_.Write("tier", "a letter to a friend");
  EXPECT_TRUE(Fails(FileStorage::Open(Options()), kInvalid, path() + ": the file is no KV tier"));
  std::ifstream file(path());
  std::string text;
  std::getline(file, text);
  EXPECT_EQ(text, "a letter to a friend");
}

// A process that is killed while it makes the file leaves such a file.
TEST_F(FileStorageTest, AFileOfZerosIsNew) {
  for (const uint64_t bytes : {uint64_t{100}, uint64_t{50'000}, uint64_t{300'000}}) {
    folder_.Write("tier", "");
    std::filesystem::resize_file(path(), bytes);
    ASSERT_OK_AND_ASSIGN(const auto storage, FileStorage::Open(Options()));
    EXPECT_EQ(storage->started_afresh(), "");
    EXPECT_THAT(storage->Restore(), IsEmpty());
    Write(*storage, 0, 1);
  }
  ASSERT_OK_AND_ASSIGN(const auto storage, FileStorage::Open(Options()));
  EXPECT_THAT(Slots(storage->Restore()), ElementsAre(0));
}

TEST_F(FileStorageTest, ADirectoryThatCannotBeReadIsLoggedAndHoldsNoPage) {
  MakeFile();
  ASSERT_OK_AND_ASSIGN(const auto storage, FileStorage::Open(Options()));
  std::filesystem::resize_file(path(), 4096 + 100);
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(storage->Restore(), IsEmpty());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::AllOf(HasSubstr("kv_tier.directory_unreadable"), HasSubstr(path())));
}

TEST_F(FileStorageTest, AnyBytesAreNoPagesOrRightPages) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    std::filesystem::remove(path());
    MakeFile();
    for (int i = 0; i < 4; ++i) {
      const char byte = static_cast<char>(random());
      // Half of the changes are in the header, which has a magic word at its beginning.
      Patch(static_cast<std::streamoff>(i % 2 == 0 ? 16 + random() % 1200 : 4096 + random() % 400), {&byte, 1});
    }
    ASSERT_OK_AND_ASSIGN(const auto storage, FileStorage::Open(Options()));
    for (const RestoredPage& page : storage->Restore()) {
      EXPECT_EQ(page.record, Record(static_cast<uint8_t>(page.slot + 1)));
    }
  }
}

TEST_F(FileStorageTest, ATornEntryIsNoPage) {
  MakeFile();
  Patch(4096 + 128 + 40, "torn");  // in the entry of slot 1
  ASSERT_OK_AND_ASSIGN(const auto storage, FileStorage::Open(Options()));
  EXPECT_THAT(Slots(storage->Restore()), ElementsAre(0, 2));
}

// A write that fails stands in for a process that ends in the middle of the write.
TEST_F(FileStorageTest, APageThatIsNotWrittenWholeIsGone) {
  MakeFile();
  {
    ASSERT_OK_AND_ASSIGN(const auto storage, FileStorage::Open(Options()));
    EXPECT_THAT(Slots(storage->Restore()), ElementsAre(0, 1, 2));
    Buffer content(7);
    // No memory at this address: the kernel reports an error after the entry was cleared.
    const std::span<const std::byte> nowhere(reinterpret_cast<const std::byte*>(uintptr_t{kStorageAlignment}),
                                             content.bytes());
    EXPECT_TRUE(Fails(storage->Write(1, Record(7), nowhere), AsStatus(absl::ErrnoToStatus(EFAULT, "")).code(), path()));
  }
  ASSERT_OK_AND_ASSIGN(const auto storage, FileStorage::Open(Options()));
  EXPECT_THAT(Slots(storage->Restore()), ElementsAre(0, 2));
}

TEST_F(FileStorageTest, PagesBehindTheEndOfATruncatedFileHaveAnotherContent) {
  MakeFile();
  std::filesystem::resize_file(path(), 8192 + 8192 + 100);  // slot 0 and the beginning of slot 1
  ASSERT_OK_AND_ASSIGN(const auto storage, FileStorage::Open(Options()));
  EXPECT_EQ(storage->started_afresh(), "");
  EXPECT_THAT(Slots(storage->Restore()), ElementsAre(0, 1, 2));
  Buffer content(9);
  ASSERT_OK(storage->Read(0, content.span()));
  EXPECT_EQ(ChecksumOf(content.span()), Record(1).checksum);
  ASSERT_OK(storage->Read(1, content.span()));
  EXPECT_NE(ChecksumOf(content.span()), Record(2).checksum);
}

TEST_F(FileStorageTest, AFileThatShrinksMeanwhileIsAnErrorOfTheRead) {
  MakeFile();
  ASSERT_OK_AND_ASSIGN(const auto storage, FileStorage::Open(Options()));
  std::filesystem::resize_file(path(), 8192);
  Buffer content(0);
  EXPECT_TRUE(Fails(storage->Read(0, content.span()), absl::StatusCode::kDataLoss, "the file ends"));
}

TEST_F(FileStorageTest, ASecondUserIsRefused) {
  ASSERT_OK_AND_ASSIGN(auto storage, FileStorage::Open(Options()));
  EXPECT_TRUE(Fails(FileStorage::Open(Options()), absl::StatusCode::kFailedPrecondition,
                    path() + ": another process uses the file"));
  storage.reset();
  EXPECT_OK(FileStorage::Open(Options()));
}

TEST_F(FileStorageTest, PathsThatCannotBeAreNamed) {
  FileStorageOptions options = Options();
  options.path = (folder_.path() / "missing" / "tier").string();
  EXPECT_TRUE(Fails(FileStorage::Open(options), absl::StatusCode::kNotFound, options.path + ": cannot open"));
  options.path = folder_.path().string();
  EXPECT_FALSE(FileStorage::Open(options).ok());
  options.path = "/dev/null";
  EXPECT_TRUE(Fails(FileStorage::Open(options), kInvalid, "/dev/null: expected a regular file"));
}

TEST_F(FileStorageTest, ASizeThatHoldsNoPageNamesTheLeastSize) {
  EXPECT_TRUE(Fails(FileStorage::Open(Options(16383)), kInvalid, "expected at least 16384 bytes"));
  EXPECT_TRUE(Fails(FileStorage::Open(Options(0)), kInvalid, "0 bytes hold no KV page"));
  ASSERT_OK_AND_ASSIGN(const auto storage, FileStorage::Open(Options(16384)));
  EXPECT_EQ(storage->slots(), 1u);
}

TEST_F(FileStorageTest, ADiskThatIsFullIsAnErrorAtTheStart) {
  const std::filesystem::path mount_point = folder_.path() / "small";
  std::filesystem::create_directory(mount_point);
  if (mount("tmpfs", mount_point.c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "needs root: " << std::strerror(errno);
  }
  FileStorageOptions options = Options();
  options.path = (mount_point / "tier").string();
  const auto refused = FileStorage::Open(options);
  const auto left = std::filesystem::file_size(options.path);
  options.bytes = 40'000;
  auto fits = FileStorage::Open(options);
  EXPECT_OK(fits);
  if (fits.ok()) Write(**fits, 0, 1);  // tmpfs may know no O_DIRECT
  fits = absl::UnknownError("closed");
  FileStorageOptions larger = options;
  larger.bytes = 100'000;
  const auto refused_later = FileStorage::Open(larger);
  fits = FileStorage::Open(options);
  const std::vector<RestoredPage> kept = fits.ok() ? (*fits)->Restore() : std::vector<RestoredPage>();
  fits = absl::UnknownError("closed");
  umount2(mount_point.c_str(), MNT_DETACH);
  EXPECT_TRUE(Fails(refused, absl::StatusCode::kResourceExhausted, "cannot take 98304 bytes"));
  EXPECT_TRUE(Fails(refused, absl::StatusCode::kResourceExhausted, "65536 bytes free and the file has 0 bytes"));
  EXPECT_EQ(left, 0u) << "the disk is as full as before";
  EXPECT_TRUE(Fails(refused_later, absl::StatusCode::kResourceExhausted, "cannot take 98304 bytes"));
  EXPECT_THAT(Slots(kept), ElementsAre(0)) << "the pages stay";
}

TEST_F(FileStorageTest, TheLimitForFilesIsAnErrorNotASignal) {
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit small{.rlim_cur = 50'000, .rlim_max = old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto storage = FileStorage::Open(Options());
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_TRUE(Fails(storage, absl::StatusCode::kResourceExhausted, "ulimit -f"));
}

}  // namespace
}  // namespace baton::testing
