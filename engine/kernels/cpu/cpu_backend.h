// SPDX-License-Identifier: Apache-2.0
// The Backend for this machine's CPUs: kernels of one family, run by a pool of compute threads. Thread-safety: see
// engine/kernels/backend.h.
//
// This class divides the work of a call among the threads. The division does not change the bits of a result.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/kernels/backend.h"
#include "engine/kernels/cpu/attention_pieces.h"
#include "engine/kernels/cpu/kernel_table.h"
#include "engine/kernels/cpu/packed_matrix.h"
#include "engine/kernels/cpu/thread_pool.h"
#include "engine/kernels/cpu/work_shares.h"

namespace baton::cpu {

class CpuActivations;

class CpuBackend final : public Backend {
 public:
  CpuBackend(const KernelTable& kernels, std::unique_ptr<ThreadPool> threads);

  std::string_view family() const override { return kernels_.family; }
  int revision() const override { return 3; }
  MemoryKind kv_memory() const override { return MemoryKind::kHost; }

  absl::StatusOr<std::unique_ptr<Matrix>> PackStacked(std::span<const TensorView> weights) override;
  absl::StatusOr<std::unique_ptr<WeightVector>> PackVector(const TensorView& weights) override;
  absl::StatusOr<std::unique_ptr<RotaryTable>> PackRotary(RopeTable table) override;
  absl::StatusOr<std::unique_ptr<Activations>> Allocate(int capacity_rows, int cols) override;
  float* HostData(Activations& x) override;

  void BeginStep(const StepRows& step) override;
  void Embed(const Matrix& table, Activations& out) override;
  void RmsNorm(const Activations& x, int rows, const WeightVector& weight, float eps, Activations& out) override;
  void MatMul(const Matrix& w, const Activations& x, int rows, Activations& out) override;
  void Add(Activations& x, const Activations& y, int rows) override;
  void SiluMul(const Activations& x, int rows, Activations& out) override;
  void HeadNorm(Activations& x, int rows, int first_col, int heads, const WeightVector& weight, float eps) override;
  void Rope(Activations& x, int first_col, int heads, const RotaryTable& table) override;
  void WriteKv(const Activations& qkv, int k_col, int v_col, LayerKv kv) override;
  void Attention(const Activations& qkv, RowSet rows, LayerKv kv, Activations& out) override;
  void GatherRows(const Activations& x, RowSet set, int first, int count, Activations& out) override;
  void Sample(const Activations& logits, int first, std::span<const SampleRow> rows) override;
  void AddRmsNorm(Activations& x, const Activations& y, int rows, const WeightVector& weight, float eps,
                  Activations& out) override;
  MachineLimits MeasureLimits(std::span<const Matrix* const> weights) override;
  absl::Duration waited() const override { return threads_->waited(); }

 private:
  // A step's attention, which is the same in all layers of a KV group.
  struct AttentionWork {
    std::vector<AttentionPiece> pieces;
    size_t work = 0;  // multiply-adds
  };
  AttentionWork CutWork(std::span<const SequenceRows> sequences, const KvBlock& block) const;

  // Calls f(row) for every row; each thread takes consecutive rows. Little work stays on the calling thread.
  template <typename F>
  void ForRows(int rows, size_t work_per_row, F f);
  // Calls f(thread, threads) on each thread. If `work` (in multiply-adds) is too small to wake the threads for, calls
  // f(0, 1).
  template <typename F>
  void Parallel(size_t work, F f);
  float* Scratch(int thread, size_t floats);  // aligned to a cache line
  void MultiplySection(const PackedMatrix& w, const PackedMatrix::Section& section, const CpuActivations& x, int rows,
                       CpuActivations& out);
  // Prepares `rows` rows of x into prepared_, in tiles of `tile_rows`.
  void Prepare(const MatMulKernel& kernel, const CpuActivations& x, int rows, int tile_rows);

  const KernelTable& kernels_;
  const std::unique_ptr<ThreadPool> threads_;
  WorkShares shares_;
  std::vector<AttentionWork> all_rows_;      // of the step, by KV group
  std::vector<AttentionWork> wanted_rows_;   // of the step, by KV group
  std::vector<std::vector<float>> scratch_;  // one per thread; no other thread touches it
  std::vector<Sampler> samplers_;            // one per thread
  std::vector<std::byte> prepared_;          // activations of the current product, see MatMulKernel
};

}  // namespace baton::cpu
