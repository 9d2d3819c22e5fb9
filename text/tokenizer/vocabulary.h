// What each token id stands for.
//
// Immutable once filled, then thread-safe.
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
  // Far above any model's; keeps a damaged id in a file from claiming gigabytes.
  static constexpr int kMaxSize = 1 << 20;

  // Makes `bytes` the text of `id`, in place of what it was. INVALID_ARGUMENT when the id is negative or too large.
  absl::Status Set(int64_t id, std::string_view bytes, bool is_special);

  int size() const { return static_cast<int>(entries_.size()); }  // highest id + 1
  // Ids may have gaps.
  bool Contains(TokenId id) const { return id >= 0 && id < size() && entries_[id].exists; }
  // Empty when the id does not exist.
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
  std::string text_;  // all tokens' bytes, one after the other
  std::vector<Entry> entries_;
};

}  // namespace baton
