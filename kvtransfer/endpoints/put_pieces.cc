// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/endpoints/put_pieces.h"

#include <cstddef>

namespace baton {

std::vector<PutPiece> PiecesOf(const handoff::WriterMachine::Put& put, const PagePool& pool,
                               uint32_t peer_pages_total) {
  const KvLayout& layout = pool.layout();
  const uint64_t block_bytes = layout.block(layout.place(put.layer).group).bytes();
  std::vector<PutPiece> pieces;
  for (size_t i = 0; i < put.sources.size(); ++i) {
    const std::byte* local = pool.block(put.layer, put.sources[i]);
    const uint64_t remote = layout.block_offset(put.layer, put.destinations[i], peer_pages_total);
    PutPiece* last = pieces.empty() ? nullptr : &pieces.back();
    if (last != nullptr && last->local + last->bytes == local && last->remote_offset + last->bytes == remote) {
      last->bytes += block_bytes;
    } else {
      pieces.push_back({.local = local, .remote_offset = remote, .bytes = block_bytes});
    }
  }
  return pieces;
}

}  // namespace baton
