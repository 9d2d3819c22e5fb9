// A batch of sequences of different lengths, laid out as rows: the new tokens of each, one sequence after the other.
#pragma once

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/kernels/backend.h"
#include "engine/model/model.h"

namespace baton {

struct RaggedBatch {
  std::vector<TokenId> tokens;          // [rows]
  std::vector<int> positions;           // [rows]
  std::vector<SequenceRows> sequences;  // all rows
  // What the last layer must still compute once K and V are written.
  std::vector<SequenceRows> wanted_sequences;  // the rows that somebody wants the outcome of
  std::vector<int> wanted_rows;                // [wanted] the same, as indices of rows
  std::vector<int> logit_rows;                 // of the wanted, which go through the head
  std::vector<int> hidden_rows;                // of the wanted, which do not
  std::vector<OutputRows> outputs;             // where each sequence's rows are among the wanted

  int rows() const { return static_cast<int>(tokens.size()); }
  int wanted() const { return static_cast<int>(wanted_rows.size()); }
};

// INVALID_ARGUMENT names the sequence and what is out of range. The result refers to the pages of `batch`.
absl::StatusOr<RaggedBatch> LayOutRows(std::span<const SequenceInput> batch, const ModelConfig& config,
                                       const KvLayout& layout, uint32_t pages_total);

}  // namespace baton
