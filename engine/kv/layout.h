#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/types.h"

namespace baton {

// Layout of the KV pool. A page holds `page_tokens` tokens. Per layer a page is one contiguous block:
//   [K|V][kv_head][token][head_dim] in `dtype`
// If `dtype` has scales, each [token][head_dim] is followed by [token] scales in f32. A block is one transfer, and a
// range of heads is a stride. The pool is layer-major:
//   [layer][page][block]
// Adjacent pages of one layer are adjacent in memory and leave in one transfer.
struct KvLayout {
  int layers = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int page_tokens = 16;
  KvType dtype = KvType::kF32;

  size_t token_bytes() const { return size_t(head_dim) * SizeOf(dtype); }       // one head's K (or V) of one token
  size_t scales_offset() const { return size_t(page_tokens) * token_bytes(); }  // within one head's K (or V)
  size_t head_bytes() const { return scales_offset() + page_tokens * scale_bytes(); }  // one head's K (or V)
  size_t block_bytes() const { return 2 * size_t(kv_heads) * head_bytes(); }           // one layer of one page
  size_t page_bytes() const { return size_t(layers) * block_bytes(); }
  size_t layer_offset(int layer, uint32_t pages_total) const { return size_t(layer) * pages_total * block_bytes(); }
  size_t block_offset(int layer, PageId page, uint32_t pages_total) const {
    return layer_offset(layer, pages_total) + size_t(ToIndex(page)) * block_bytes();
  }
  size_t scale_bytes() const { return HasScales(dtype) ? sizeof(float) : 0; }
  int pages_for(int tokens) const { return (tokens + page_tokens - 1) / page_tokens; }

  bool operator==(const KvLayout&) const = default;
};

}  // namespace baton
