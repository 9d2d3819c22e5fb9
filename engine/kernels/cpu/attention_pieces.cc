#include "engine/kernels/cpu/attention_pieces.h"

#include <algorithm>
#include <cstddef>

namespace baton::cpu {
namespace {

// How many tokens from the first on are in the same pages and before every row of both, in whole blocks.
int SharedTokens(const SequenceRows& a, const SequenceRows& b, const AttentionCut& cut) {
  const auto first_other = std::mismatch(a.pages.begin(), a.pages.end(), b.pages.begin(), b.pages.end()).first;
  const auto tokens = (first_other - a.pages.begin()) * ptrdiff_t{cut.page_tokens};
  const auto shared = std::min({tokens, ptrdiff_t{a.start_position}, ptrdiff_t{b.start_position}});
  return static_cast<int>(shared) / cut.block_tokens * cut.block_tokens;
}

// Whether `rows` joined `piece`, which has room for them.
bool Join(const QueryRows& rows, const AttentionCut& cut, AttentionPiece& piece) {
  const int shared = SharedTokens(*piece.rows[0].sequence, *rows.sequence, cut);
  const bool alone = piece.rows.size() == 1;
  // One that shares little would cost the others what they share.
  if (shared == 0 || (!alone && 2 * shared < piece.shared_tokens)) return false;
  piece.shared_tokens = alone ? shared : std::min(shared, piece.shared_tokens);
  piece.rows.push_back(rows);
  return true;
}

}  // namespace

std::vector<AttentionPiece> CutAttention(std::span<const SequenceRows> batch, const AttentionCut& cut) {
  int total = 0;
  // Sequences that share pages share the first.
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
  int left = 0;  // queries that the last piece has room for
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
