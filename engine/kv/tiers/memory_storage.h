// SPDX-License-Identifier: Apache-2.0
// Slots in anonymous memory of this process, which the kernel backs as slots are written.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mapping.h"
#include "engine/kv/tiers/storage.h"

namespace baton {

class MemoryStorage final : public TierStorage {
 public:
  // INVALID_ARGUMENT if `bytes` hold no page. RESOURCE_EXHAUSTED names the bytes if memory is short.
  static absl::StatusOr<std::unique_ptr<MemoryStorage>> Create(uint64_t bytes, size_t page_bytes);

  std::string_view name() const override { return "memory"; }
  uint32_t slots() const override { return slots_; }
  absl::Status Write(uint32_t slot, const PageRecord& record, std::span<const std::byte> content) override;
  absl::Status Read(uint32_t slot, std::span<std::byte> content) override;
  std::vector<RestoredPage> Restore() override { return {}; }

 private:
  MemoryStorage(Mapping memory, size_t slot_bytes, uint32_t slots)
      : memory_(std::move(memory)), slot_bytes_(slot_bytes), slots_(slots) {}

  const Mapping memory_;
  const size_t slot_bytes_;
  const uint32_t slots_;
};

}  // namespace baton
