// SPDX-License-Identifier: Apache-2.0
// Computes a model on one kind of device. A Backend owns packed weights and activations and implements the kernels of a
// forward pass. Code above engine/kernels does not know which backend runs.
//
// BeginStep gives the backend the step's rows once, so that a device uploads them once. Kernels of all layers use them.
//
// Numerics (docs/architecture.md): each output element depends on its own inputs only and is accumulated in one fixed
// order. The number of rows, neighbouring rows and the number of threads do not change its bits. No kernel calls libm.
//
// Not thread-safe: one call at a time. A call runs on the backend's compute threads and returns when the result is
// complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/kv/layout.h"
#include "engine/sampling/sampler.h"
#include "engine/types.h"

namespace baton {

// Borrowed view of a tensor of a model file: [rows, cols], row-major.
struct TensorView {
  const std::byte* data = nullptr;
  TensorType type = TensorType::kF32;
  int rows = 0;  // 1 for a vector
  int cols = 0;
  // If not 0: the rows belong to this many heads, and the halves of a head are interleaved, as in GGUF's q and k of
  // Llama. In a head of d rows, row i of the first half is file row 2i. Row i of the second half is file row 2i + 1.
  int interleaved_heads = 0;
};

// Weights [outputs, inputs] in a backend's own layout, packed once at load time.
class Matrix {
 public:
  virtual ~Matrix() = default;
  virtual int outputs() const = 0;
  virtual int inputs() const = 0;
  virtual size_t bytes() const = 0;
};

// Norm weights in f32, in the backend's memory.
class WeightVector {
 public:
  virtual ~WeightVector() = default;
  virtual int size() const = 0;
};

// A RopeTable in the backend's memory.
class RotaryTable {
 public:
  virtual ~RotaryTable() = default;
};

// f32 activations [rows, cols], row-major, in the backend's memory.
class Activations {
 public:
  virtual ~Activations() = default;
  virtual int capacity_rows() const = 0;
  virtual int cols() const = 0;
};

// The rows of one sequence within a ragged batch, and its page table in one KV group.
struct SequenceRows {
  int first_row = 0;
  int rows = 0;
  int start_position = 0;         // position of first_row; the pages hold earlier positions
  std::span<const PageId> pages;  // at least start_position + rows tokens
};

// The step's rows in one KV group.
struct GroupRows {
  KvBlock block;
  size_t block_stride = 0;                              // bytes from a page's block to the next page's
  std::span<const SequenceRows> sequences = {};         // all rows, by sequence
  std::span<const SequenceRows> wanted_sequences = {};  // the wanted rows, by sequence
};

// The KV of one layer: page p's block is at data + p * block_stride of the group.
struct LayerKv {
  int group = 0;
  std::byte* data = nullptr;
};

// cos and sin by position and pair: [max_positions, head_dim / 2] each.
struct RopeTable {
  std::vector<float> cos = {};
  std::vector<float> sin = {};
  int half_dim = 0;
};

// The rows of a step, and what the kernels of every layer need to know of them.
struct StepRows {
  std::span<const TokenId> tokens = {};   // [rows]
  std::span<const int> positions = {};    // [rows]
  std::span<const int> wanted_rows = {};  // [wanted]: row indices
  std::span<const int> logit_rows = {};   // indices into wanted_rows
  int heads = 0;
  std::span<const GroupRows> groups = {};  // empty if the step has no attention
};

// A row of logits to sample from. The row's parameters and history stay unchanged meanwhile.
struct SampleRow {
  const SamplingParams* params = nullptr;
  const TokenHistory* history = nullptr;
  SampledToken* sampled = nullptr;  // result
};

enum class RowSet : uint8_t { kAll, kWanted, kLogits };

// RMSNorm of each head before RoPE; null: none.
struct HeadNorms {
  const WeightVector* q = nullptr;  // [head_dim]
  const WeightVector* k = nullptr;  // [head_dim]
  float eps = 0;
};

// Peak rates of the machine with all of a backend's threads: the bound that kernels are compared with.
struct MachineLimits {
  double read_bytes_per_second = 0;
  double f32_per_second = 0;   // operations; a fused multiply-add counts as two
  double bf16_per_second = 0;  // operations; 0 if the CPU has no BF16 products
  double int8_per_second = 0;  // operations
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view family() const = 0;  // "scalar", "avx2", "avx512", ...
  virtual int revision() const = 0;             // part of numerics_id: raise it when a kernel's bits change
  virtual MemoryKind kv_memory() const = 0;     // where WriteKv and Attention need the pages

  // Stacks matrices with equal cols by rows and packs them as one Matrix: q, k and v; gate and up. Float types stay as
  // they are. Quantized types keep their codes; 5- and 6-bit codes take a byte each. INVALID_ARGUMENT if shapes do not
  // fit; RESOURCE_EXHAUSTED names the bytes.
  virtual absl::StatusOr<std::unique_ptr<Matrix>> PackStacked(std::span<const TensorView> weights) = 0;
  absl::StatusOr<std::unique_ptr<Matrix>> Pack(const TensorView& weights) { return PackStacked({&weights, 1}); }
  // Widens a vector of a float type to f32.
  virtual absl::StatusOr<std::unique_ptr<WeightVector>> PackVector(const TensorView& weights) = 0;
  virtual absl::StatusOr<std::unique_ptr<RotaryTable>> PackRotary(RopeTable table) = 0;
  virtual absl::StatusOr<std::unique_ptr<Activations>> Allocate(int capacity_rows, int cols) = 0;
  virtual float* HostData(Activations& x) = 0;  // rows on the host; valid until the next call

  // Starts a step. The data of `step` must stay valid and unchanged until the step's last kernel.
  virtual void BeginStep(const StepRows& step) { step_ = step; }

  // out[r] = row tokens[r] of `table`, widened to f32.
  virtual void Embed(const Matrix& table, Activations& out) = 0;
  // out[r] = x[r] / rms(x[r]) * weight; out may be x.
  virtual void RmsNorm(const Activations& x, int rows, const WeightVector& weight, float eps, Activations& out) = 0;
  // out[r][o] = sum over i of x[r][i] * w[o][i], in order of i.
  virtual void MatMul(const Matrix& w, const Activations& x, int rows, Activations& out) = 0;
  // x[r] += y[r].
  virtual void Add(Activations& x, const Activations& y, int rows) = 0;
  // out[r][j] = silu(x[r][j]) * x[r][n + j]. x has 2n columns: gate, then up.
  virtual void SiluMul(const Activations& x, int rows, Activations& out) = 0;
  // In place: RMSNorm (Qwen3) of `heads` heads of weight.size() columns from first_col on.
  virtual void HeadNorm(Activations& x, int rows, int first_col, int heads, const WeightVector& weight, float eps) = 0;
  // In place, for all rows of the step: rotary embedding that pairs x[i] with x[i + head_dim / 2], as Hugging Face's
  // Llama does.
  virtual void Rope(Activations& x, int first_col, int heads, const RotaryTable& table) = 0;
  // Rounds K and V of all rows to the KV dtype and writes them to their pages. K and V begin at columns k_col and v_col
  // of qkv.
  virtual void WriteKv(const Activations& qkv, int k_col, int v_col, LayerKv kv) = 0;
  // Causal attention of all or of the wanted rows over the pages, with K and V as rounded by WriteKv. The queries are
  // columns [0, heads * head_dim) of qkv. Splits are blocks of fixed size counted from position 0 and merged in order.
  virtual void Attention(const Activations& qkv, RowSet rows, LayerKv kv, Activations& out) = 0;
  // out[i] = x[row first + i of `set`]. kLogits counts within the wanted rows.
  virtual void GatherRows(const Activations& x, RowSet set, int first, int count, Activations& out) = 0;
  // Samples a token from each row of `logits` from `first` on: the token and logprobs of Sampler, bit for bit.
  virtual void Sample(const Activations& logits, int first, std::span<const SampleRow> rows) = 0;

  // Fused kernels. A backend may override them with kernels that have the same bits as its simple ones.
  // x[r] += y[r]; then out = RmsNorm(x). out may be y.
  virtual void AddRmsNorm(Activations& x, const Activations& y, int rows, const WeightVector& weight, float eps,
                          Activations& out);
  // HeadNorm of q and k, Rope of q and k, then WriteKv. Columns of qkv: the heads of q, of k, of v.
  virtual void RotateAndWriteKv(Activations& qkv, const HeadNorms& norms, const RotaryTable& table, LayerKv kv);

  // Measures for about a second. Reads `weights`, packed by this backend, because read speed depends on where memory
  // lies.
  virtual MachineLimits MeasureLimits(std::span<const Matrix* const> weights) = 0;
  // Total time that callers waited for the last compute thread to finish.
  virtual absl::Duration waited() const = 0;

 protected:
  StepRows step_;
};

// Bytes of a matrix of `values` values of `type` once the CPU backend has packed it, without panel padding.
size_t PackedBytes(TensorType type, size_t values);

struct BackendOptions {
  std::string_view device = "cpu";
  int threads = 1;             // including the calling thread
  std::vector<int> cpus = {};  // compute thread i is pinned to cpus[i]; empty: unpinned
  std::string_view kernels = "auto";
};

// The devices that CreateBackend knows.
std::vector<std::string> KnownDevices();

// INVALID_ARGUMENT for an unknown device or kernel family, FAILED_PRECONDITION if the device cannot run the kernels.
absl::StatusOr<std::unique_ptr<Backend>> CreateBackend(const BackendOptions& options);

// CreateBackend for the device "cpu".
absl::StatusOr<std::unique_ptr<Backend>> CreateCpuBackend(const BackendOptions& options);

}  // namespace baton
