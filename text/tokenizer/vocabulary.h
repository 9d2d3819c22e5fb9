// SPDX-License-Identifier: Apache-2.0
// Maps token ids to the bytes that they decode to.
//
// Not thread-safe while loading. Afterwards only const methods are called, which are thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/ids.h"

namespace baton {

class Vocabulary {
 public:
  // Far above every real model. Keeps a damaged id in a file from allocating gigabytes.
  static constexpr int kMaxSize = 1 << 20;

  // Sets or replaces the entry of `id`. INVALID_ARGUMENT when `id` is outside [0, kMaxSize).
  absl::Status Set(int64_t id, std::string_view bytes, bool is_special);

  int size() const { return static_cast<int>(entries_.size()); }  // highest id + 1
  // Not every id below size() need exist.
  bool Contains(TokenId id) const { return id >= 0 && id < size() && entries_[id].exists; }
  // Empty when `id` does not exist.
  std::string_view Bytes(TokenId id) const {
    if (!Contains(id)) return {};
    return std::string_view(text_).substr(entries_[id].offset, entries_[id].length);
  }
  bool IsSpecial(TokenId id) const { return Contains(id) && entries_[id].is_special; }

 private:
  struct Entry {
    uint32_t offset = 0;  // in text_
    uint32_t length = 0;
    bool exists = false;
    bool is_special = false;
  };
  std::string text_;  // the concatenated bytes of all tokens
  std::vector<Entry> entries_;
};

}  // namespace baton
