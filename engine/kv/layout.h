// SPDX-License-Identifier: Apache-2.0
// Layout of the KV pool.
//
// Layers whose KV has one shape form a *KV group*. A page holds the KV of `page_tokens` tokens in the layers of one
// group. A sequence has one page table per group. All pages have equal size, so that any page can serve any group.
//
// Page tables travel as one list, here and in every message: the pages of all groups for the first tokens, then for the
// next tokens. Page i of the list belongs to group i % groups() and holds the tokens from i / groups() * page_tokens()
// on. A plain value; thread-compatible.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/types.h"

namespace baton {

// One layer's KV of a page, contiguous: [K|V][kv_head][token][head_dim] in `dtype`. If `dtype` has scales, each
// [token][head_dim] is followed by [token] scales in f32. A block is one transfer, and a range of heads is a stride.
struct KvBlock {
  int kv_heads = 0;
  int head_dim = 0;
  int page_tokens = 16;
  KvType dtype = KvType::kF32;

  size_t token_bytes() const { return size_t(head_dim) * SizeOf(dtype); }       // one head's K (or V) of one token
  size_t scales_offset() const { return size_t(page_tokens) * token_bytes(); }  // within one head's K (or V)
  size_t head_bytes() const { return scales_offset() + page_tokens * scale_bytes(); }  // one head's K (or V)
  size_t bytes() const { return 2 * size_t(kv_heads) * head_bytes(); }
  size_t scale_bytes() const { return HasScales(dtype) ? sizeof(float) : 0; }

  bool operator==(const KvBlock&) const = default;
};

// The pool is slot-major: [slot][page][block]. A layer has the same slot in every page of its group. Blocks of adjacent
// pages are adjacent in memory and leave in one transfer.
class KvLayout {
 public:
  // A model's layer: its group, and its slot in the pages of the group.
  struct Place {
    int group = 0;
    int slot = 0;
    bool operator==(const Place&) const = default;
  };

  // One group.
  KvLayout(int layers, const KvBlock& block) : KvLayout({block}, std::vector<int>(std::max(layers, 0))) {}
  // Layer i is in group group_of_layer[i], whose blocks are blocks[group_of_layer[i]]. All blocks have one page_tokens
  // and one dtype.
  KvLayout(std::vector<KvBlock> blocks, std::span<const int> group_of_layer);

  int layers() const { return static_cast<int>(places_.size()); }
  int groups() const { return static_cast<int>(blocks_.size()); }
  int page_tokens() const { return blocks_[0].page_tokens; }
  KvType dtype() const { return blocks_[0].dtype; }
  const Place& place(int layer) const { return places_[layer]; }
  const KvBlock& block(int group) const { return blocks_[group]; }

  int slots() const { return slots_; }                          // blocks of a page: layers of the largest group
  size_t block_stride() const { return stride_; }               // bytes of the largest group's block
  size_t page_bytes() const { return slots_ * stride_; }        // of one page
  size_t row_bytes() const { return groups() * page_bytes(); }  // of the pages of all groups for page_tokens tokens
  size_t block_offset(int layer, PageId page, uint32_t pages_total) const {
    return (size_t(place(layer).slot) * pages_total + ToIndex(page)) * stride_;
  }

  // Numbers of pages of all groups together.
  int pages_for(int tokens) const { return (tokens + page_tokens() - 1) / page_tokens() * groups(); }
  int full_pages(int tokens) const { return tokens / page_tokens() * groups(); }
  // Tokens whose KV `pages` pages from the first on hold in all groups.
  int tokens_in(int pages) const { return pages / groups() * page_tokens(); }

  // Equal layouts have equal texts. Example: "16 tokens of bf16; 8 heads of 128 in layers 0-27".
  std::string ToString() const;
  bool operator==(const KvLayout&) const = default;

 private:
  std::vector<KvBlock> blocks_;  // by group
  std::vector<Place> places_;    // by layer
  int slots_ = 0;
  size_t stride_ = 0;
};

}  // namespace baton
