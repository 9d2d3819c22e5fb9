// SPDX-License-Identifier: Apache-2.0
#include "engine/kv/tiers/file_storage.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "common/sha256.h"
#include "common/status_macros.h"

namespace baton {
namespace {

constexpr char kMagic[16] = "baton kv tier\n";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kHeaderBytes = 4096;
constexpr size_t kShownContent = 1024;

struct Header {
  char magic[16];
  uint32_t version;
  uint32_t slots;
  uint64_t slot_bytes;
  uint64_t file_bytes;
  uint8_t content[32];        // SHA-256
  char shown[kShownContent];  // the beginning of the content, ends with 0
  uint8_t checksum[32];       // of the bytes before
};

// All zero: the slot holds no page.
struct Entry {
  uint8_t name[32];
  uint8_t parent[32];
  uint8_t checksum[16];  // of the page
  uint64_t number;       // of the write
  uint32_t has_parent;
  uint8_t unused[20];
  uint8_t entry_checksum[16];  // of the bytes before
};
static_assert(sizeof(Header) <= kHeaderBytes && sizeof(Entry) == 128);
static_assert(std::is_trivially_copyable_v<Header> && std::is_trivially_copyable_v<Entry>);

template <typename T>
std::span<const std::byte> BytesBefore(const T& value, const uint8_t* checksum) {
  const auto* const begin = reinterpret_cast<const std::byte*>(&value);
  return {begin, reinterpret_cast<const std::byte*>(checksum)};
}

Sha256::Digest HashOf(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.Add(bytes);
  return hash.Finish();
}

absl::Status SystemError(const std::string& path, std::string_view what, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat(path, ": ", std::string(what)));
}

// Reads or writes all bytes, or returns why not.
template <typename Call>
absl::Status Transfer(const std::string& path, std::string_view what, Call call, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t result = call(done);
    if (result < 0 && errno == EINTR) continue;
    if (result < 0) return SystemError(path, what, errno);
    if (result == 0) {
      return absl::DataLossError(
          absl::StrCat(path, ": ", std::string(what), ": the file ends ", bytes - done, " bytes early"));
    }
    done += static_cast<size_t>(result);
  }
  return absl::OkStatus();
}

absl::Status ReadAt(const std::string& path, int fd, uint64_t offset, void* to, size_t bytes) {
  return Transfer(
      path, "cannot read",
      [&](size_t done) {
        return pread(fd, static_cast<char*>(to) + done, bytes - done, static_cast<off_t>(offset + done));
      },
      bytes);
}

absl::Status WriteAt(const std::string& path, int fd, uint64_t offset, const void* from, size_t bytes) {
  return Transfer(
      path, "cannot write",
      [&](size_t done) {
        return pwrite(fd, static_cast<const char*>(from) + done, bytes - done, static_cast<off_t>(offset + done));
      },
      bytes);
}

// The kernel kills a process that exceeds its limit for the size of files.
absl::Status CheckSizeLimit(const std::string& path, uint64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes <= limit.rlim_cur) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(path, ": ", bytes, " bytes wanted, this process may write files of ",
                                                   limit.rlim_cur, " bytes (ulimit -f)"));
}

// Checks that the disk has room for a file of `bytes` bytes in place of the file `fd`.
absl::Status CheckFreeSpace(const std::string& path, int fd, uint64_t bytes) {
  struct stat facts{};
  struct statvfs disk{};
  if (fstat(fd, &facts) != 0) return SystemError(path, "cannot read the file's facts", errno);
  if (fstatvfs(fd, &disk) != 0) return SystemError(path, "cannot read the disk's facts", errno);
  constexpr uint64_t kStatBlock = 512;
  const uint64_t own = static_cast<uint64_t>(facts.st_blocks) * kStatBlock;
  const uint64_t available = uint64_t{disk.f_bavail} * disk.f_frsize;
  if (bytes <= own + available) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(path, ": cannot take ", bytes, " bytes: the disk has ", available,
                                                   " bytes free and the file has ", own, " bytes"));
}

absl::StatusOr<FileStorage::Shape> ShapeOf(const FileStorageOptions& options) {
  FileStorage::Shape shape{.slot_bytes = StorageBytes(options.page_bytes)};
  const auto directory = [](uint64_t slots) { return StorageBytes(slots * sizeof(Entry)); };
  const uint64_t left = options.bytes - std::min(options.bytes, kHeaderBytes);
  uint64_t slots = std::min<uint64_t>(left / (shape.slot_bytes + sizeof(Entry)), UINT32_MAX);
  // The directory is rounded up.
  while (slots > 0 && directory(slots) + slots * shape.slot_bytes > left) --slots;
  if (slots == 0) {
    return absl::InvalidArgumentError(absl::StrCat(options.path, ": ", options.bytes,
                                                   " bytes hold no KV page, expected at least ",
                                                   kHeaderBytes + directory(1) + shape.slot_bytes, " bytes"));
  }
  shape.slots = static_cast<uint32_t>(slots);
  shape.data_offset = kHeaderBytes + directory(slots);
  return shape;
}

Header HeaderOf(const FileStorageOptions& options, const FileStorage::Shape& shape) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kVersion;
  header.slots = shape.slots;
  header.slot_bytes = shape.slot_bytes;
  header.file_bytes = shape.file_bytes();
  const Sha256::Digest content = HashOf(std::as_bytes(std::span(options.content)));
  std::copy(content.begin(), content.end(), header.content);
  options.content.copy(header.shown, kShownContent - 1);
  const Sha256::Digest checksum = HashOf(BytesBefore(header, header.checksum));
  std::copy(checksum.begin(), checksum.end(), header.checksum);
  return header;
}

// Returns why the pages of a file with header `found` are of no use; empty if the pages are of use.
std::string WhyAfresh(const Header& found, const Header& wanted) {
  if (found.version != kVersion) {
    return absl::StrCat("the file has version ", found.version, ", this worker writes version ", kVersion);
  }
  const Sha256::Digest checksum = HashOf(BytesBefore(found, found.checksum));
  if (!std::equal(checksum.begin(), checksum.end(), found.checksum)) return "the header is damaged";
  if (std::memcmp(found.content, wanted.content, sizeof(found.content)) != 0) {
    const std::string shown(found.shown, strnlen(found.shown, kShownContent));
    return absl::StrCat("the pages are of \"", shown, "\", this worker's are of \"", wanted.shown, "\"");
  }
  if (found.slots != wanted.slots || found.slot_bytes != wanted.slot_bytes) {
    return absl::StrCat("the file was made with ", found.file_bytes, " bytes, this worker wants ", wanted.file_bytes);
  }
  return "";
}

}  // namespace

FileStorage::File::~File() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<std::unique_ptr<FileStorage>> FileStorage::Open(const FileStorageOptions& options) {
  BATON_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(options));
  File file(open(options.path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (file.fd() < 0) return SystemError(options.path, "cannot open", errno);
  if (flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return SystemError(options.path, "cannot lock", errno);
    return absl::FailedPreconditionError(
        absl::StrCat(options.path, ": another process uses the file, expected one file for each worker"));
  }
  auto storage = std::unique_ptr<FileStorage>(new FileStorage(options.path, std::move(file), shape));
  BATON_RETURN_IF_ERROR(storage->Prepare(options));
  storage->OpenDirect();
  return storage;
}

absl::Status FileStorage::Prepare(const FileStorageOptions& options) {
  struct stat facts{};
  if (fstat(file_.fd(), &facts) != 0) return SystemError(path_, "cannot read the file's facts", errno);
  if (!S_ISREG(facts.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path_, ": expected a regular file"));
  if (facts.st_size == 0) return StartAfresh(options);
  std::array<std::byte, kHeaderBytes> first{};
  const auto size = static_cast<uint64_t>(facts.st_size);
  BATON_RETURN_IF_ERROR(ReadAt(path_, file_.fd(), 0, first.data(), std::min<uint64_t>(first.size(), size)));
  // A process that ends in StartAfresh leaves zeros.
  if (std::ranges::all_of(first, [](std::byte byte) { return byte == std::byte{0}; })) return StartAfresh(options);
  Header found{};
  std::memcpy(&found, first.data(), sizeof(found));
  if (std::memcmp(found.magic, kMagic, sizeof(kMagic)) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": the file is no KV tier, expected a new path or the file of a KV tier"));
  }
  started_afresh_ = WhyAfresh(found, HeaderOf(options, shape_));
  if (!started_afresh_.empty()) return StartAfresh(options);
  if (size >= shape_.file_bytes()) return absl::OkStatus();
  // The pages behind the end are lost: their checksums will differ.
  BATON_RETURN_IF_ERROR(CheckSizeLimit(path_, shape_.file_bytes()));
  const int error = posix_fallocate(file_.fd(), 0, static_cast<off_t>(shape_.file_bytes()));
  return error == 0 ? absl::OkStatus()
                    : SystemError(path_, absl::StrCat("cannot take ", shape_.file_bytes(), " bytes"), error);
}

absl::Status FileStorage::StartAfresh(const FileStorageOptions& options) {
  BATON_RETURN_IF_ERROR(CheckSizeLimit(path_, shape_.file_bytes()));
  BATON_RETURN_IF_ERROR(CheckFreeSpace(path_, file_.fd(), shape_.file_bytes()));
  if (ftruncate(file_.fd(), 0) != 0) return SystemError(path_, "cannot empty the file", errno);
  if (const int error = posix_fallocate(file_.fd(), 0, static_cast<off_t>(shape_.file_bytes())); error != 0) {
    // The disk filled meanwhile, or a quota holds: the file keeps no space. Its former pages are lost.
    if (ftruncate(file_.fd(), 0) != 0) return SystemError(path_, "cannot empty the file", errno);
    return SystemError(path_, absl::StrCat("cannot take ", shape_.file_bytes(), " bytes"), error);
  }
  const Header header = HeaderOf(options, shape_);
  return WriteAt(path_, file_.fd(), 0, &header, sizeof(header));
}

// Some file systems know no O_DIRECT.
void FileStorage::OpenDirect() { direct_ = File(open(path_.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC)); }

absl::Status FileStorage::WriteEntry(uint32_t slot, const PageRecord* record) {
  Entry entry{};
  if (record != nullptr) {
    std::copy(record->name.begin(), record->name.end(), entry.name);
    if (record->parent.has_value()) std::copy(record->parent->begin(), record->parent->end(), entry.parent);
    entry.has_parent = record->parent.has_value() ? 1 : 0;
    std::copy(record->checksum.begin(), record->checksum.end(), entry.checksum);
    entry.number = ++writes_;
    const PageChecksum checksum = ChecksumOf(BytesBefore(entry, entry.entry_checksum));
    std::copy(checksum.begin(), checksum.end(), entry.entry_checksum);
  }
  return WriteAt(path_, file_.fd(), kHeaderBytes + uint64_t{slot} * sizeof(Entry), &entry, sizeof(entry));
}

absl::Status FileStorage::Write(uint32_t slot, const PageRecord& record, std::span<const std::byte> content) {
  BATON_RETURN_IF_ERROR(WriteEntry(slot, nullptr));
  BATON_RETURN_IF_ERROR(
      WriteAt(path_, data_fd(), shape_.data_offset + slot * shape_.slot_bytes, content.data(), content.size()));
  return WriteEntry(slot, &record);
}

absl::Status FileStorage::Read(uint32_t slot, std::span<std::byte> content) {
  return ReadAt(path_, data_fd(), shape_.data_offset + slot * shape_.slot_bytes, content.data(), content.size());
}

std::vector<RestoredPage> FileStorage::Restore() {
  std::vector<Entry> entries(shape_.slots);
  if (const absl::Status read = ReadAt(path_, file_.fd(), kHeaderBytes, entries.data(), entries.size() * sizeof(Entry));
      !read.ok()) {
    Log(LogLevel::kWarning, "kv_tier.directory_unreadable", {{"detail", std::string(read.message())}});
    return {};
  }
  std::vector<std::pair<uint64_t, RestoredPage>> found;
  for (uint32_t slot = 0; slot < shape_.slots; ++slot) {
    const Entry& entry = entries[slot];
    if (entry.number == 0) continue;
    const PageChecksum checksum = ChecksumOf(BytesBefore(entry, entry.entry_checksum));
    if (!std::equal(checksum.begin(), checksum.end(), entry.entry_checksum)) continue;  // torn
    RestoredPage page{.slot = slot, .record = {}};
    std::copy_n(entry.name, page.record.name.size(), page.record.name.begin());
    std::copy_n(entry.checksum, page.record.checksum.size(), page.record.checksum.begin());
    if (entry.has_parent != 0) std::copy_n(entry.parent, sizeof(entry.parent), page.record.parent.emplace().begin());
    found.emplace_back(entry.number, page);
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (!found.empty()) writes_ = found.back().first;
  std::vector<RestoredPage> pages;
  pages.reserve(found.size());
  for (const auto& [number, page] : found) pages.push_back(page);
  return pages;
}

}  // namespace baton
