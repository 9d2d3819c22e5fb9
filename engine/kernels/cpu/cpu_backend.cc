// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/cpu/cpu_backend.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "engine/kernels/cpu/cpu_features.h"
#include "engine/kernels/cpu/packed_matrix.h"
#include "engine/kv/host_memory.h"

namespace baton {
namespace cpu {
namespace {

// Multiply-adds below which the calling thread finishes sooner than other threads wake.
constexpr size_t kParallelWork = 128 << 10;
constexpr size_t kSamplingWork = 4;  // of the cheapest sampling, in multiply-adds per logit
constexpr int kChunksPerThread = 8;  // of a product's panels
// Rows (query, head) that share one load of a K and V block: enough to pay for the load, few enough for the cache.
constexpr int kAttentionRows = 64;

}  // namespace

class CpuActivations final : public Activations {
 public:
  CpuActivations(int capacity_rows, int cols, Mapping memory)
      : capacity_rows_(capacity_rows), cols_(cols), memory_(std::move(memory)) {}
  int capacity_rows() const override { return capacity_rows_; }
  int cols() const override { return cols_; }
  float* row(int r) { return reinterpret_cast<float*>(memory_.data()) + size_t(r) * cols_; }
  const float* row(int r) const { return reinterpret_cast<const float*>(memory_.data()) + size_t(r) * cols_; }

 private:
  const int capacity_rows_;
  const int cols_;
  const Mapping memory_;
};

namespace {

class CpuVector final : public WeightVector {
 public:
  explicit CpuVector(std::vector<float> values) : values(std::move(values)) {}
  int size() const override { return static_cast<int>(values.size()); }
  const std::vector<float> values;
};

class CpuRotaryTable final : public RotaryTable {
 public:
  explicit CpuRotaryTable(RopeTable table) : table(std::move(table)) {}
  const RopeTable table;
};

const float* Values(const WeightVector& weight) { return static_cast<const CpuVector&>(weight).values.data(); }

CpuActivations& Of(Activations& x) { return static_cast<CpuActivations&>(x); }
const CpuActivations& Of(const Activations& x) { return static_cast<const CpuActivations&>(x); }

size_t Index(KvType dtype) { return static_cast<size_t>(dtype); }

}  // namespace

CpuBackend::CpuBackend(const KernelTable& kernels, std::unique_ptr<ThreadPool> threads)
    : kernels_(kernels),
      threads_(std::move(threads)),
      shares_(threads_->threads()),
      scratch_(threads_->threads()),
      samplers_(threads_->threads()) {}

template <typename F>
void CpuBackend::Parallel(size_t work, F f) {
  if (work < kParallelWork) {
    f(0, 1);
  } else {
    threads_->Run([&](int thread) { f(thread, threads_->threads()); });
  }
}

template <typename F>
void CpuBackend::ForRows(int rows, size_t work_per_row, F f) {
  Parallel(rows * work_per_row, [&](int thread, int threads) {
    const Share share = ShareOf(rows, thread, threads);
    for (int r = share.begin; r < share.end; ++r) f(r);
  });
}

float* CpuBackend::Scratch(int thread, size_t floats) {
  constexpr size_t kLine = 64;
  std::vector<float>& scratch = scratch_[thread];
  if (scratch.size() * sizeof(float) < floats * sizeof(float) + kLine) {
    scratch.resize(floats + kLine / sizeof(float));
  }
  const size_t over = reinterpret_cast<uintptr_t>(scratch.data()) % kLine;
  return scratch.data() + (over == 0 ? 0 : (kLine - over) / sizeof(float));
}

absl::StatusOr<std::unique_ptr<Matrix>> CpuBackend::PackStacked(std::span<const TensorView> weights) {
  return PackedMatrix::Create(weights, {kernels_.panel_outputs, kernels_.bf16_format}, *threads_);
}

absl::StatusOr<std::unique_ptr<WeightVector>> CpuBackend::PackVector(const TensorView& weights) {
  std::vector<float> values(size_t(weights.rows) * weights.cols);
  Widen(weights.data, 1, weights.type, values.size(), values.data());
  return std::make_unique<CpuVector>(std::move(values));
}

absl::StatusOr<std::unique_ptr<RotaryTable>> CpuBackend::PackRotary(RopeTable table) {
  return std::make_unique<CpuRotaryTable>(std::move(table));
}

absl::StatusOr<std::unique_ptr<Activations>> CpuBackend::Allocate(int capacity_rows, int cols) {
  if (capacity_rows <= 0 || cols <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("activations have shape [", capacity_rows, ", ", cols, "], expected positive numbers"));
  }
  BATON_ASSIGN_OR_RETURN(Mapping memory, AllocateHostMemory(size_t(capacity_rows) * cols * sizeof(float)));
  return std::make_unique<CpuActivations>(capacity_rows, cols, std::move(memory));
}

float* CpuBackend::HostData(Activations& x) { return Of(x).row(0); }

void CpuBackend::BeginStep(const StepRows& step) {
  Backend::BeginStep(step);
  all_rows_.clear();
  wanted_rows_.clear();
  for (const GroupRows& group : step.groups) {
    all_rows_.push_back(CutWork(group.sequences, group.block));
    wanted_rows_.push_back(CutWork(group.wanted_sequences, group.block));
  }
}

void CpuBackend::Embed(const Matrix& table, Activations& out) {
  const auto& packed = static_cast<const PackedMatrix&>(table);
  const std::span<const TokenId> ids = step_.tokens;
  assert(out.cols() == packed.inputs() && ids.size() <= static_cast<size_t>(out.capacity_rows()));
  ForRows(static_cast<int>(ids.size()), packed.inputs(), [&](int r) { packed.ReadOutput(ids[r], Of(out).row(r)); });
}

void CpuBackend::RmsNorm(const Activations& x, int rows, const WeightVector& weight, float eps, Activations& out) {
  const int cols = x.cols();
  assert(weight.size() == cols && out.cols() == cols);
  assert(rows <= x.capacity_rows() && rows <= out.capacity_rows());
  ForRows(rows, cols, [&](int r) { kernels_.rms_norm(Of(x).row(r), cols, Values(weight), eps, Of(out).row(r)); });
}

void CpuBackend::AddRmsNorm(Activations& x, const Activations& y, int rows, const WeightVector& weight, float eps,
                            Activations& out) {
  const int cols = x.cols();
  assert(weight.size() == cols && y.cols() == cols && out.cols() == cols);
  assert(rows <= x.capacity_rows() && rows <= y.capacity_rows() && rows <= out.capacity_rows());
  ForRows(rows, size_t(2) * cols, [&](int r) {
    kernels_.add(Of(x).row(r), Of(y).row(r), cols);
    kernels_.rms_norm(Of(x).row(r), cols, Values(weight), eps, Of(out).row(r));
  });
}

void CpuBackend::MatMul(const Matrix& w, const Activations& x, int rows, Activations& out) {
  const auto& packed = static_cast<const PackedMatrix&>(w);
  assert(x.cols() == w.inputs() && out.cols() == w.outputs());
  assert(rows <= x.capacity_rows() && rows <= out.capacity_rows());
  // Each format needs its own preparation of the activations.
  for (const PackedMatrix::Section& section : packed.sections()) MultiplySection(packed, section, Of(x), rows, Of(out));
}

void CpuBackend::MultiplySection(const PackedMatrix& w, const PackedMatrix::Section& section, const CpuActivations& x,
                                 int rows, CpuActivations& out) {
  const MatMulKernel& kernel = kernels_.matmul[static_cast<int>(section.format)];
  int tile_rows = 0;
  if (kernel.prepare != nullptr) {
    // Tiles of equal height: a low tile has too few chains to hide the latency of the additions.
    const int tiles = (rows + kernel.tile_rows - 1) / kernel.tile_rows;
    tile_rows = (rows + tiles - 1) / tiles;
    Prepare(kernel, x, rows, tile_rows);
  }
  const size_t work = size_t(rows) * w.inputs() * section.outputs;
  const int chunks = work < kParallelWork ? 1 : std::min(section.panels, threads_->threads() * kChunksPerThread);
  shares_.Reset(chunks);
  Parallel(work, [&](int thread, int) {
    shares_.ForEach(thread, [&](int chunk) {
      const Share panels = ShareOf(section.panels, chunk, chunks);
      kernel.multiply({.panels = section.data,
                       .outputs = section.outputs,
                       .inputs = w.inputs(),
                       .panel_begin = panels.begin,
                       .panel_end = panels.end,
                       .x = x.row(0),
                       .rows = rows,
                       .prepared = prepared_.data(),
                       .tile_rows = tile_rows,
                       .out = out.row(0) + section.first_output,
                       .out_stride = size_t(out.cols()),
                       .scratch = Scratch(thread, kernels_.matmul_scratch)});
    });
  });
}

void CpuBackend::Prepare(const MatMulKernel& kernel, const CpuActivations& x, int rows, int tile_rows) {
  const size_t row_bytes = kernel.row_bytes(x.cols());
  if (prepared_.size() < rows * row_bytes) prepared_.resize(rows * row_bytes);
  const int tiles = (rows + tile_rows - 1) / tile_rows;
  Parallel(size_t(rows) * x.cols(), [&](int thread, int threads) {
    const Share share = ShareOf(tiles, thread, threads);
    for (int tile = share.begin; tile < share.end; ++tile) {
      const int row = tile * tile_rows;
      kernel.prepare(x.row(row), x.cols(), std::min(tile_rows, rows - row), x.cols(),
                     prepared_.data() + row * row_bytes);
    }
  });
}

void CpuBackend::Add(Activations& x, const Activations& y, int rows) {
  assert(x.cols() == y.cols() && rows <= x.capacity_rows() && rows <= y.capacity_rows());
  ForRows(rows, x.cols(), [&](int r) { kernels_.add(Of(x).row(r), Of(y).row(r), x.cols()); });
}

void CpuBackend::SiluMul(const Activations& x, int rows, Activations& out) {
  const int cols = out.cols();
  assert(x.cols() == 2 * cols && rows <= x.capacity_rows() && rows <= out.capacity_rows());
  ForRows(rows, size_t(cols) * 4, [&](int r) {
    const float* const gate = Of(x).row(r);
    kernels_.silu_mul(gate, gate + cols, cols, Of(out).row(r));
  });
}

void CpuBackend::HeadNorm(Activations& x, int rows, int first_col, int heads, const WeightVector& weight, float eps) {
  const int head_dim = weight.size();
  assert(rows <= x.capacity_rows() && first_col + heads * head_dim <= x.cols());
  ForRows(rows, size_t(heads) * head_dim, [&](int r) {
    for (int h = 0; h < heads; ++h) {
      float* const head = Of(x).row(r) + first_col + size_t(h) * head_dim;
      kernels_.rms_norm(head, head_dim, Values(weight), eps, head);
    }
  });
}

void CpuBackend::Rope(Activations& x, int first_col, int heads, const RotaryTable& rotary) {
  const RopeTable& table = static_cast<const CpuRotaryTable&>(rotary).table;
  const std::span<const int> positions = step_.positions;
  const int half = table.half_dim;
  assert(positions.size() <= static_cast<size_t>(x.capacity_rows()) && first_col + heads * 2 * half <= x.cols());
  ForRows(static_cast<int>(positions.size()), size_t(heads) * 2 * half, [&](int r) {
    const size_t offset = size_t(positions[r]) * half;
    assert(offset + half <= table.cos.size() && offset + half <= table.sin.size());
    for (int h = 0; h < heads; ++h) {
      kernels_.rope(Of(x).row(r) + first_col + size_t(h) * 2 * half, &table.cos[offset], &table.sin[offset], half);
    }
  });
}

void CpuBackend::WriteKv(const Activations& qkv, int k_col, int v_col, LayerKv kv) {
  const GroupRows& group = step_.groups[kv.group];
  const KvBlock& block = group.block;
  const size_t half_block = block.bytes() / 2;
  const auto round = kernels_.round_head[Index(block.dtype)];
  for (const SequenceRows& sequence : group.sequences) {
    ForRows(sequence.rows, size_t(2) * block.kv_heads * block.head_dim, [&](int r) {
      const int position = sequence.start_position + r;
      const PageId page = sequence.pages[position / block.page_tokens];
      const size_t slot = position % block.page_tokens;
      const size_t scale = block.scales_offset() + slot * block.scale_bytes();
      const float* const row = Of(qkv).row(sequence.first_row + r);
      for (int h = 0; h < block.kv_heads; ++h) {
        std::byte* const k = kv.data + ToIndex(page) * group.block_stride + h * block.head_bytes();
        std::byte* const v = k + half_block;
        const size_t col = size_t(h) * block.head_dim;
        round(row + k_col + col, block.head_dim, k + slot * block.token_bytes(), k + scale);
        round(row + v_col + col, block.head_dim, v + slot * block.token_bytes(), v + scale);
      }
    });
  }
}

CpuBackend::AttentionWork CpuBackend::CutWork(std::span<const SequenceRows> sequences, const KvBlock& block) const {
  AttentionWork cut;
  cut.pieces = CutAttention(sequences, {.max_queries = std::max(1, kAttentionRows * block.kv_heads / step_.heads),
                                        .min_pieces = (threads_->threads() + block.kv_heads - 1) / block.kv_heads,
                                        .page_tokens = block.page_tokens,
                                        .block_tokens = kAttentionBlockTokens});
  for (const SequenceRows& sequence : sequences) {
    cut.work += size_t(sequence.rows) * step_.heads * (sequence.start_position + sequence.rows) * block.head_dim * 2;
  }
  return cut;
}

void CpuBackend::Attention(const Activations& qkv, RowSet rows, LayerKv kv, Activations& out) {
  const GroupRows& in_group = step_.groups[kv.group];
  const KvBlock& block = in_group.block;
  const int heads = step_.heads;
  const int head_dim = block.head_dim;
  const int group = heads / block.kv_heads;
  assert(group * block.kv_heads == heads && heads * head_dim <= qkv.cols() && heads * head_dim <= out.cols());
  assert(rows != RowSet::kLogits);
  const auto& [pieces, work] = rows == RowSet::kAll ? all_rows_[kv.group] : wanted_rows_[kv.group];
  const size_t scratch = kernels_.attention_scratch(std::max(kAttentionRows, group), head_dim);
  const int tasks = static_cast<int>(pieces.size()) * block.kv_heads;
  shares_.Reset(tasks);
  Parallel(work, [&, &pieces = pieces](int thread, int) {
    std::vector<AttentionMember> members;
    shares_.ForEach(thread, [&](int chunk) {
      // Later pieces of a prompt see more tokens. Long pieces run first, so that the threads end at about the same
      // time.
      const int task = tasks - 1 - chunk;
      const AttentionPiece& piece = pieces[task / block.kv_heads];
      const size_t kv_head = task % block.kv_heads;
      const size_t col = kv_head * group * head_dim;
      members.clear();
      for (const QueryRows& rows : piece.rows) {
        const int row = rows.sequence->first_row + rows.first;
        members.push_back({.q = Of(qkv).row(row) + col,
                           .out = Of(out).row(row) + col,
                           .queries = rows.count,
                           .start_position = rows.sequence->start_position + rows.first,
                           .pages = rows.sequence->pages.data()});
      }
      kernels_.attention[Index(block.dtype)]({.members = members.data(),
                                              .member_count = static_cast<int>(members.size()),
                                              .shared_tokens = piece.shared_tokens,
                                              .q_stride = size_t(qkv.cols()),
                                              .out_stride = size_t(out.cols()),
                                              .group = group,
                                              .head_dim = head_dim,
                                              .blocks = kv.data + kv_head * block.head_bytes(),
                                              .block_bytes = in_group.block_stride,
                                              .v_offset = block.bytes() / 2,
                                              .page_tokens = block.page_tokens,
                                              .scratch = Scratch(thread, scratch)});
    });
  });
}

void CpuBackend::GatherRows(const Activations& x, RowSet set, int first, int count, Activations& out) {
  assert(x.cols() == out.cols() && count <= out.capacity_rows() && set != RowSet::kAll);
  const std::span<const int> rows = set == RowSet::kWanted ? step_.wanted_rows : step_.logit_rows;
  for (int i = 0; i < count; ++i) {
    std::memmove(Of(out).row(i), Of(x).row(rows[first + i]), size_t(x.cols()) * sizeof(float));
  }
}

void CpuBackend::Sample(const Activations& logits, int first, std::span<const SampleRow> rows) {
  const auto vocab_size = static_cast<size_t>(logits.cols());
  assert(first + static_cast<int>(rows.size()) <= logits.capacity_rows());
  shares_.Reset(static_cast<int>(rows.size()));
  Parallel(rows.size() * vocab_size * kSamplingWork, [&](int thread, int) {
    shares_.ForEach(thread, [&](int i) {
      const SampleRow& row = rows[i];
      *row.sampled = samplers_[thread].Sample({Of(logits).row(first + i), vocab_size}, *row.params, *row.history);
    });
  });
}

}  // namespace cpu

absl::StatusOr<std::unique_ptr<Backend>> CreateCpuBackend(const BackendOptions& options) {
  BATON_ASSIGN_OR_RETURN(const cpu::KernelTable* kernels, cpu::FindKernels(options.kernels));
  BATON_ASSIGN_OR_RETURN(std::unique_ptr<cpu::ThreadPool> threads,
                         cpu::ThreadPool::Create(options.threads, options.cpus));
  return std::make_unique<cpu::CpuBackend>(*kernels, std::move(threads));
}

}  // namespace baton
