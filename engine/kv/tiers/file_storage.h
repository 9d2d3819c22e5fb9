// SPDX-License-Identifier: Apache-2.0
// Slots in a local file, which a later process may open again.
//
//   header      4096 bytes: magic, version, sizes, what the pages are of (`content`), checksum
//   directory   128 bytes a slot: the page's record, when the slot was written, checksum
//   pages       one slot after the other, each a multiple of 4096 bytes
//
// The file takes its whole size when it is made: a full disk is an error then, not later. Free space is checked before
// a file that starts afresh loses its pages. Pages are read and written
// past the page cache (O_DIRECT) where the file system can, so that a tier takes no memory.
//
// A write clears the slot's entry in the directory, writes the page, then writes the entry. A process that ends in
// between loses the page. If the machine ends, an entry may be newer than its page; the page's checksum then differs.
// Nothing is synced: pages that are lost are computed again.
//
// One process uses a file at a time, by a lock that ends with the process. Numbers have the machine's byte order. Also
// see storage.h for threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/kv/tiers/storage.h"

namespace baton {

struct FileStorageOptions {
  std::string path;
  uint64_t bytes = 0;  // of the file; rounded down to whole slots
  size_t page_bytes = 0;
  // Numerics id and KV layout: pages of another `content` are of no use. A file of another content, size or version
  // starts afresh with a warning. An upgrade or another model would otherwise keep the worker from starting, and a
  // cache is worth less than a running worker.
  std::string content;
};

class FileStorage final : public TierStorage {
 public:
  // Errors name the file. INVALID_ARGUMENT: the size holds no page, or the file is no tier and stays as it is.
  // RESOURCE_EXHAUSTED: the disk has too little free space, and the file stays as it is.
  // FAILED_PRECONDITION: another process uses the file. Else the system's reason.
  static absl::StatusOr<std::unique_ptr<FileStorage>> Open(const FileStorageOptions& options);

  std::string_view name() const override { return "file"; }
  uint32_t slots() const override { return shape_.slots; }
  absl::Status Write(uint32_t slot, const PageRecord& record, std::span<const std::byte> content) override;
  absl::Status Read(uint32_t slot, std::span<std::byte> content) override;
  std::vector<RestoredPage> Restore() override;

  // Why the file starts afresh; empty if it does not, or if the file is new.
  const std::string& started_afresh() const { return started_afresh_; }

  struct Shape {
    uint64_t slot_bytes = 0;
    uint64_t data_offset = 0;
    uint32_t slots = 0;
    uint64_t file_bytes() const { return data_offset + slots * slot_bytes; }
  };

  // Closes a file descriptor.
  class File {
   public:
    explicit File(int fd = -1) : fd_(fd) {}
    File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    File& operator=(File&& other) noexcept {
      std::swap(fd_, other.fd_);
      return *this;
    }
    ~File();
    int fd() const { return fd_; }

   private:
    int fd_;
  };

 private:
  FileStorage(std::string path, File file, const Shape& shape)
      : path_(std::move(path)), file_(std::move(file)), shape_(shape) {}
  absl::Status Prepare(const FileStorageOptions& options);
  absl::Status StartAfresh(const FileStorageOptions& options);
  absl::Status WriteEntry(uint32_t slot, const PageRecord* record);
  void OpenDirect();
  int data_fd() const { return direct_.fd() >= 0 ? direct_.fd() : file_.fd(); }

  const std::string path_;
  File file_;    // through the page cache: header and directory
  File direct_;  // past the page cache: pages. None where the file system cannot
  const Shape shape_;
  std::string started_afresh_;
  std::atomic<uint64_t> writes_{0};  // number of the last write, over the processes that used the file
};

}  // namespace baton
