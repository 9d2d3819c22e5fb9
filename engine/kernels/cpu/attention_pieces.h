// How a batch's attention is cut into pieces of work: some neighbouring queries of one sequence, or of several
// sequences whose context begins in the same pages, so that what they share is loaded once for all of them.
//
// How it is cut never shows in the results. Pure functions.
#pragma once

#include <span>
#include <vector>

#include "engine/kernels/backend.h"

namespace baton::cpu {

// Some of the query rows of one sequence.
struct QueryRows {
  const SequenceRows* sequence = nullptr;
  int first = 0;  // of the sequence's rows in the batch
  int count = 0;
};

struct AttentionPiece {
  std::vector<QueryRows> rows;
  int shared_tokens = 0;  // whole blocks, in the same pages for all rows and before each of them; 0 if rows is one
};

struct AttentionCut {
  int max_queries = 1;  // of a piece
  int min_pieces = 1;   // as far as there are queries for them
  int page_tokens = 0;
  int block_tokens = 0;  // what kernels load at once
};

std::vector<AttentionPiece> CutAttention(std::span<const SequenceRows> batch, const AttentionCut& cut);

}  // namespace baton::cpu
