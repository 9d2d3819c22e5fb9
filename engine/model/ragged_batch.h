// SPDX-License-Identifier: Apache-2.0
// Lays out sequences of different lengths as rows: the new tokens of one sequence after the other. Movable; may refer
// to the caller's page tables.
#pragma once

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/kernels/backend.h"
#include "engine/model/model.h"

namespace baton {

struct RaggedBatch {
  // The rows in one KV group, by sequence. A row is wanted if its logits, hidden state or a token were requested. Once
  // K and V are written, the last layer computes only wanted rows.
  struct Group {
    std::vector<SequenceRows> sequences;         // all rows
    std::vector<SequenceRows> wanted_sequences;  // the wanted rows
    std::vector<PageId> pages;                   // of all tables, if there are several groups
  };

  std::vector<TokenId> tokens;         // [rows]
  std::vector<int> positions;          // [rows]
  std::vector<Group> groups;           // at least one
  std::vector<int> wanted_rows;        // [wanted]: row indices; rows to sample from come last
  std::vector<int> logit_rows;         // indices into wanted_rows: rows for the head, in their order
  std::vector<int> hidden_rows;        // indices into wanted_rows: rows of hidden states
  std::vector<OutputRows> outputs;     // by sequence: its range of wanted_rows, without rows to sample from
  std::vector<int> sampled_sequences;  // of the rows to sample from: their sequences

  // The rows in the backend's form. Refers to this batch.
  std::vector<GroupRows> ForBackend(const KvLayout& layout) const;
  // All rows by sequence, with the page tables of the first group.
  std::span<const SequenceRows> sequences() const { return groups[0].sequences; }
  int rows() const { return static_cast<int>(tokens.size()); }
  int sampled() const { return static_cast<int>(sampled_sequences.size()); }
  int wanted() const { return static_cast<int>(wanted_rows.size()); }
};

// INVALID_ARGUMENT names the sequence and what is out of range. The result points into the page tables of `batch`.
absl::StatusOr<RaggedBatch> LayOutRows(std::span<const SequenceInput> batch, const ModelConfig& config,
                                       const KvLayout& layout, uint32_t pages_total);

}  // namespace baton
