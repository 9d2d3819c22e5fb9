// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/cpu/attention_pieces.h"

#include <algorithm>
#include <cstddef>

namespace baton::cpu {
namespace {

// Returns how many leading tokens, in whole blocks, `a` and `b` have in the same pages and before all of their rows.
int SharedTokens(const SequenceRows& a, const SequenceRows& b, const AttentionCut& cut) {
  const auto first_other = std::mismatch(a.pages.begin(), a.pages.end(), b.pages.begin(), b.pages.end()).first;
  const auto tokens = (first_other - a.pages.begin()) * ptrdiff_t{cut.page_tokens};
  const auto shared = std::min({tokens, ptrdiff_t{a.start_position}, ptrdiff_t{b.start_position}});
  return static_cast<int>(shared) / cut.block_tokens * cut.block_tokens;
}

// Returns false if `rows` share too little with `piece`; else adds `rows`. `piece` must have room for them.
bool Join(const QueryRows& rows, const AttentionCut& cut, AttentionPiece& piece) {
  const int shared = SharedTokens(*piece.rows[0].sequence, *rows.sequence, cut);
  const bool alone = piece.rows.size() == 1;
  // The shared part of a piece is that of all its members: a member that shares little would shrink it for all.
  if (shared == 0 || (!alone && 2 * shared < piece.shared_tokens)) return false;
  piece.shared_tokens = alone ? shared : std::min(shared, piece.shared_tokens);
  piece.rows.push_back(rows);
  return true;
}

}  // namespace

std::vector<AttentionPiece> CutAttention(std::span<const SequenceRows> batch, const AttentionCut& cut) {
  int total = 0;
  // Sequences that share pages have the same first page, so sorting by first page brings them together.
  std::vector<const SequenceRows*> sequences;
  for (const SequenceRows& sequence : batch) {
    sequences.push_back(&sequence);
    total += sequence.rows;
  }
  std::stable_sort(sequences.begin(), sequences.end(), [](const SequenceRows* a, const SequenceRows* b) {
    return ToIndex(a->pages[0]) < ToIndex(b->pages[0]);
  });
  const int most = std::clamp(total / cut.min_pieces, 1, cut.max_queries);

  std::vector<AttentionPiece> pieces;
  int left = 0;  // room of the last piece, in queries
  for (const SequenceRows* const sequence : sequences) {
    for (int first = 0; first < sequence->rows; first += most) {
      const QueryRows rows = {sequence, first, std::min(most, sequence->rows - first)};
      if (rows.count <= left && Join(rows, cut, pieces.back())) {
        left -= rows.count;
      } else {
        pieces.push_back({{rows}, 0});
        left = most - rows.count;
      }
    }
  }
  return pieces;
}

}  // namespace baton::cpu
