// SPDX-License-Identifier: Apache-2.0
// Cuts one put into pieces for a transport. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/kv/page_pool.h"
#include "kvtransfer/handoff/writer_machine.h"
#include "kvtransfer/transport.h"

namespace baton {

// Returns one piece per run of pages that are neighbours in `pool` and in the peer's pool of `peer_pages_total` pages.
std::vector<PutPiece> PiecesOf(const handoff::WriterMachine::Put& put, const PagePool& pool, uint32_t peer_pages_total);

}  // namespace baton
