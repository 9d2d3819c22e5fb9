// SPDX-License-Identifier: Apache-2.0
#include "engine/kv/tiers/memory_storage.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/sha256.h"
#include "common/status_macros.h"
#include "engine/kv/host_memory.h"

namespace baton {

PageChecksum ChecksumOf(std::span<const std::byte> content) {
  Sha256 hash;
  hash.Add(content);
  const Sha256::Digest digest = hash.Finish();
  PageChecksum checksum;
  std::copy_n(digest.begin(), checksum.size(), checksum.begin());
  return checksum;
}

absl::StatusOr<std::unique_ptr<MemoryStorage>> MemoryStorage::Create(uint64_t bytes, size_t page_bytes) {
  const size_t slot_bytes = page_bytes;
  const uint64_t slots = std::min<uint64_t>(bytes / slot_bytes, UINT32_MAX);
  if (slots == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(bytes, " bytes hold no KV page, expected at least ", slot_bytes, " bytes"));
  }
  BATON_ASSIGN_OR_RETURN(Mapping memory, AllocateHostMemory(slots * slot_bytes));
  return std::unique_ptr<MemoryStorage>(new MemoryStorage(std::move(memory), slot_bytes, static_cast<uint32_t>(slots)));
}

absl::Status MemoryStorage::Write(uint32_t slot, const PageRecord& /*record*/, std::span<const std::byte> content) {
  std::memcpy(memory_.data() + slot * slot_bytes_, content.data(), std::min(content.size(), slot_bytes_));
  return absl::OkStatus();
}

absl::Status MemoryStorage::Read(uint32_t slot, std::span<std::byte> content) {
  std::memcpy(content.data(), memory_.data() + slot * slot_bytes_, std::min(content.size(), slot_bytes_));
  return absl::OkStatus();
}

}  // namespace baton
