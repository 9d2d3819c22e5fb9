// SPDX-License-Identifier: Apache-2.0
// Where a tier keeps the content of its pages: a fixed number of slots of one page each.
//
// Read and Write may run at once on different threads, for different slots. A slot has one user at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "engine/kv/page_hash.h"

namespace baton {

// The first half of a page's SHA-256.
using PageChecksum = std::array<uint8_t, 16>;
PageChecksum ChecksumOf(std::span<const std::byte> content);

// A page by its name, and how its content is recognized.
struct PageRecord {
  PageHash name = {};
  std::optional<PageHash> parent;  // name of the page before
  PageChecksum checksum = {};

  bool operator==(const PageRecord&) const = default;
};

struct RestoredPage {
  uint32_t slot = 0;
  PageRecord record;
};

// Contents of pages go through buffers whose start is aligned to, and whose size is a multiple of, this many bytes.
inline constexpr size_t kStorageAlignment = 4096;
constexpr size_t StorageBytes(size_t page_bytes) {
  return (page_bytes + kStorageAlignment - 1) / kStorageAlignment * kStorageAlignment;
}

class TierStorage {
 public:
  virtual ~TierStorage() = default;

  virtual std::string_view name() const = 0;  // label of metrics: "memory", "file"
  virtual uint32_t slots() const = 0;
  // Replaces the content of the slot. After an error the slot holds no page.
  virtual absl::Status Write(uint32_t slot, const PageRecord& record, std::span<const std::byte> content) = 0;
  // The caller compares the checksum.
  virtual absl::Status Read(uint32_t slot, std::span<std::byte> content) = 0;
  // Returns the pages that an earlier process has left, oldest first. Call before the first Write. Logs why pages
  // cannot be read, and returns none.
  virtual std::vector<RestoredPage> Restore() = 0;
};

}  // namespace baton
