// SPDX-License-Identifier: Apache-2.0
#include "engine/kv/layout.h"

#include <cassert>

#include "absl/strings/str_cat.h"
#include "common/strings.h"

namespace baton {

KvLayout::KvLayout(std::vector<KvBlock> blocks, std::span<const int> group_of_layer) : blocks_(std::move(blocks)) {
  std::vector<int> slots(blocks_.size());
  for (const int group : group_of_layer) {
    assert(group >= 0 && group < groups());
    places_.push_back({group, slots[group]++});
  }
  for (const KvBlock& block : blocks_) {
    assert(block.page_tokens == page_tokens() && block.dtype == dtype());
    stride_ = std::max(stride_, block.bytes());
  }
  slots_ = *std::max_element(slots.begin(), slots.end());
}

std::string KvLayout::ToString() const {
  std::string text = absl::StrCat(page_tokens(), " tokens of ", ToAbsl(Name(dtype())));
  for (int group = 0; group < groups(); ++group) {
    absl::StrAppend(&text, "; ", blocks_[group].kv_heads, " heads of ", blocks_[group].head_dim, " in layers");
    for (int layer = 0; layer < layers(); ++layer) {
      if (places_[layer].group != group) continue;
      const int first = layer;
      while (layer + 1 < layers() && places_[layer + 1].group == group) ++layer;
      absl::StrAppend(&text, " ", first, "-", layer);
    }
  }
  return text;
}

}  // namespace baton
