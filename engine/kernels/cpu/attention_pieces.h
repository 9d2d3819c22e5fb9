// SPDX-License-Identifier: Apache-2.0
// Cuts a batch's attention into pieces of work. A piece is some consecutive queries of one sequence, or of several
// sequences whose context begins in the same pages. A piece loads the K and V that its sequences share once.
//
// Pure functions. The cut does not change the bits of a result.
#pragma once

#include <span>
#include <vector>

#include "engine/kernels/backend.h"

namespace baton::cpu {

// Consecutive query rows of one sequence.
struct QueryRows {
  const SequenceRows* sequence = nullptr;
  int first = 0;  // index within the sequence's rows
  int count = 0;
};

struct AttentionPiece {
  std::vector<QueryRows> rows;
  int shared_tokens = 0;  // leading tokens in pages common to all rows; whole blocks; 0 for one sequence
};

struct AttentionCut {
  int max_queries = 1;  // per piece
  int min_pieces = 1;   // if there are enough queries
  int page_tokens = 0;
  int block_tokens = 0;  // kAttentionBlockTokens
};

std::vector<AttentionPiece> CutAttention(std::span<const SequenceRows> batch, const AttentionCut& cut);

}  // namespace baton::cpu
