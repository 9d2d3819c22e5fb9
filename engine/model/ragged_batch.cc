// SPDX-License-Identifier: Apache-2.0
#include "engine/model/ragged_batch.h"

#include <algorithm>

#include "absl/status/status.h"
#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {
namespace {

constexpr int64_t kMaxRows = int64_t{1} << 20;

absl::Status Check(const SequenceInput& sequence, const ModelConfig& config, const KvLayout& layout,
                   uint32_t pages_total) {
  if (sequence.tokens.empty()) return absl::InvalidArgumentError("expected at least one new token");
  for (const TokenId token : sequence.tokens) {
    if (token < 0 || token >= config.vocab_size) {
      return absl::InvalidArgumentError(
          Concat("token ", token, " is outside the vocabulary, expected less than ", config.vocab_size));
    }
  }
  if (sequence.want == Want::kToken && (sequence.sampling == nullptr || sequence.history == nullptr)) {
    return absl::InvalidArgumentError("expected sampling parameters and a history for the token");
  }
  const int64_t end = int64_t{sequence.start_position} + static_cast<int64_t>(sequence.tokens.size());
  if (sequence.start_position < 0 || end > config.max_positions) {
    return absl::InvalidArgumentError(Concat("positions [", sequence.start_position, ", ", end,
                                             ") are outside the model's [0, ", config.max_positions, ")"));
  }
  const auto pages = static_cast<size_t>(layout.pages_for(static_cast<int>(end)));
  if (sequence.pages.size() < pages) {
    return absl::InvalidArgumentError(Concat(end, " tokens need ", pages, " pages, got ", sequence.pages.size()));
  }
  for (const PageId page : sequence.pages.first(pages)) {
    if (ToIndex(page) >= pages_total) {
      return absl::InvalidArgumentError(
          Concat("page ", ToIndex(page), " is outside the pool, expected less than ", pages_total));
    }
  }
  return absl::OkStatus();
}

// Returns the wanted rows of a sequence, which are always its last rows.
SequenceRows WantedOf(const SequenceRows& sequence, Want want) {
  const int count = want == Want::kNothing ? 0 : want == Want::kAllLogits ? sequence.rows : 1;
  const int skipped = sequence.rows - count;
  return {sequence.first_row + skipped, count, sequence.start_position + skipped, sequence.pages};
}

// Returns the page table of `input` in `group`.
std::span<const PageId> TableOf(const SequenceInput& input, const KvLayout& layout, int group, RaggedBatch& rows) {
  if (layout.groups() == 1) return input.pages;
  std::vector<PageId>& pages = rows.groups[group].pages;
  const size_t begin = pages.size();
  for (size_t i = group; i < input.pages.size(); i += layout.groups()) pages.push_back(input.pages[i]);
  return std::span(pages).subspan(begin);
}

void Append(const SequenceInput& input, const KvLayout& layout, RaggedBatch& rows) {
  SequenceRows sequence = {rows.rows(), static_cast<int>(input.tokens.size()), input.start_position, {}};
  SequenceRows wanted;
  for (int group = 0; group < layout.groups(); ++group) {
    sequence.pages = TableOf(input, layout, group, rows);
    rows.groups[group].sequences.push_back(sequence);
    wanted = WantedOf(sequence, input.want);
    if (wanted.rows > 0) rows.groups[group].wanted_sequences.push_back(wanted);
  }
  rows.tokens.insert(rows.tokens.end(), input.tokens.begin(), input.tokens.end());
  for (int i = 0; i < sequence.rows; ++i) rows.positions.push_back(input.start_position + i);

  const bool sampled = input.want == Want::kToken;
  rows.outputs.push_back({rows.wanted(), sampled ? 0 : wanted.rows});
  if (wanted.rows == 0) return;
  if (sampled) {
    rows.sampled_sequences.push_back(static_cast<int>(rows.sequences().size()) - 1);
    return;
  }
  std::vector<int>& of_kind = input.want == Want::kLastHidden ? rows.hidden_rows : rows.logit_rows;
  for (int i = 0; i < wanted.rows; ++i) {
    of_kind.push_back(rows.wanted());
    rows.wanted_rows.push_back(wanted.first_row + i);
  }
}

}  // namespace

std::vector<GroupRows> RaggedBatch::ForBackend(const KvLayout& layout) const {
  std::vector<GroupRows> rows;
  rows.reserve(layout.groups());
  for (int group = 0; group < layout.groups(); ++group) {
    rows.push_back(
        {layout.block(group), layout.block_stride(), groups[group].sequences, groups[group].wanted_sequences});
  }
  return rows;
}

absl::StatusOr<RaggedBatch> LayOutRows(std::span<const SequenceInput> batch, const ModelConfig& config,
                                       const KvLayout& layout, uint32_t pages_total) {
  int64_t rows_total = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    if (const absl::Status status = Check(batch[i], config, layout, pages_total); !status.ok()) {
      return absl::InvalidArgumentError(Concat("sequence ", i, " of the batch: ", status.message()));
    }
    rows_total += static_cast<int64_t>(batch[i].tokens.size());
  }
  if (rows_total > kMaxRows) {
    return absl::InvalidArgumentError(Concat("the batch has ", rows_total, " tokens, expected at most ", kMaxRows));
  }
  RaggedBatch rows;
  rows.tokens.reserve(rows_total);
  rows.positions.reserve(rows_total);
  rows.groups.resize(layout.groups());
  if (layout.groups() > 1) {
    // The spans of SequenceRows stay valid, because no table grows.
    size_t pages = 0;
    for (const SequenceInput& sequence : batch) pages += sequence.pages.size();
    for (RaggedBatch::Group& group : rows.groups) group.pages.reserve(pages / layout.groups() + batch.size());
  }
  for (const SequenceInput& sequence : batch) Append(sequence, layout, rows);
  for (const int sequence : rows.sampled_sequences) {
    rows.logit_rows.push_back(rows.wanted());
    rows.wanted_rows.push_back(rows.sequences()[sequence].first_row + rows.sequences()[sequence].rows - 1);
  }
  return rows;
}

}  // namespace baton
