// A Backend is where a model computes: it owns packed weights and activations and implements the few kernels of a
// forward pass. Nothing above engine/kernels knows which one runs.
//
// Numerics (docs/architecture.md): every output element is a function of its own inputs with one order of accumulation,
// whatever the number of rows, their neighbours or the number of threads. No kernel calls libm.
//
// Not thread-safe: one call at a time. Calls use the backend's own compute threads and return when done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/kv/layout.h"
#include "engine/types.h"

namespace baton {

// [rows, cols], row-major, in a file's memory.
struct TensorView {
  const std::byte* data = nullptr;
  TensorType type = TensorType::kF32;
  int rows = 0;  // 1 for a vector
  int cols = 0;
  // If not 0: the rows are those of this many heads, and within a head of d rows the file holds row i of the first half
  // at 2 i and row i of the second half at 2 i + 1 (q and k of Llama in GGUF).
  int interleaved_heads = 0;
};

// Weights in the form a backend wants them: [outputs, inputs], packed once at load time.
class Matrix {
 public:
  virtual ~Matrix() = default;
  virtual int outputs() const = 0;
  virtual int inputs() const = 0;
  virtual size_t bytes() const = 0;
};

// f32 activations, row-major [rows, cols], in the backend's memory.
class Activations {
 public:
  virtual ~Activations() = default;
  virtual int capacity_rows() const = 0;
  virtual int cols() const = 0;
};

// The rows of one sequence within a batch.
struct SequenceRows {
  int first_row = 0;
  int rows = 0;
  int start_position = 0;         // of first_row; earlier positions are in the pages
  std::span<const PageId> pages;  // cover start_position + rows
};

// cos and sin of every (position, pair): [max_positions, head_dim / 2] each.
struct RopeTable {
  std::vector<float> cos = {};
  std::vector<float> sin = {};
  int half_dim = 0;
};

// Where one layer's K and V of the whole pool are, in the backend's memory.
struct KvLayer {
  std::byte* blocks = nullptr;  // block of page p at blocks + p * layout->block_bytes()
  const KvLayout* layout = nullptr;
};

// What the machine gives at most, with all of a backend's threads: what kernels are measured against.
struct MachineLimits {
  double read_bytes_per_second = 0;
  double f32_per_second = 0;   // multiplications and additions, two per fused one
  double bf16_per_second = 0;  // likewise; 0 without such instructions
  double int8_per_second = 0;  // likewise
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view family() const = 0;  // "scalar", "avx2", "avx512", ...
  virtual int revision() const = 0;             // raised whenever a kernel's bits change

  // Floats keep their type; quantized weights keep their codes, 5- and 6-bit ones in a byte each. INVALID_ARGUMENT when
  // shapes do not fit; RESOURCE_EXHAUSTED names the bytes.
  virtual absl::StatusOr<std::unique_ptr<Matrix>> Pack(const TensorView& weights) = 0;
  // `weights` below each other, as one matrix: q, k and v; gate and up. All of the same cols.
  virtual absl::StatusOr<std::unique_ptr<Matrix>> PackStacked(std::span<const TensorView> weights) = 0;
  // A vector (norm weights) in f32.
  virtual std::vector<float> Vector(const TensorView& weights) = 0;
  virtual absl::StatusOr<std::unique_ptr<Activations>> Allocate(int capacity_rows, int cols) = 0;
  virtual float* HostData(Activations& x) = 0;  // where the host reads results; valid until the next call

  // out[r] = row ids[r] of `table`, widened to f32.
  virtual void Embed(const Matrix& table, std::span<const TokenId> ids, Activations& out) = 0;
  // out[r] = x[r] / rms(x[r]) * weight; out may be x.
  virtual void RmsNorm(const Activations& x, int rows, std::span<const float> weight, float eps, Activations& out) = 0;
  // out[r][o] = sum over i of x[r][i] * w[o][i], in order of i.
  virtual void MatMul(const Matrix& w, const Activations& x, int rows, Activations& out) = 0;
  // x += y.
  virtual void Add(Activations& x, const Activations& y, int rows) = 0;
  // out[r][j] = silu(x[r][j]) * x[r][n + j], x having 2 n columns: gate beside up.
  virtual void SiluMul(const Activations& x, int rows, Activations& out) = 0;
  // In place on the heads in columns [first_col, first_col + heads * head_dim): RMSNorm over head_dim (Qwen3).
  virtual void HeadNorm(Activations& x, int rows, int first_col, int heads, int head_dim, std::span<const float> weight,
                        float eps) = 0;
  // In place, rotating halves (x[i], x[i + head_dim/2]) as Hugging Face's Llama does. positions[r] of each row.
  virtual void Rope(Activations& x, std::span<const int> positions, int first_col, int heads,
                    const RopeTable& table) = 0;
  // Rounds K and V of the new rows (columns [k_col, ...) and [v_col, ...) of qkv) to the KV dtype and puts them in the
  // pages.
  virtual void WriteKv(const Activations& qkv, int k_col, int v_col, std::span<const SequenceRows> batch,
                       const KvLayer& kv) = 0;
  // Causal attention of the q heads in columns [0, heads * head_dim) of qkv over the pages, K and V read as rounded.
  // Splits are blocks of fixed size counted from position 0, merged in order.
  virtual void Attention(const Activations& qkv, int heads, std::span<const SequenceRows> batch, const KvLayer& kv,
                         Activations& out) = 0;
  // out[i] = x[rows[i]].
  virtual void GatherRows(const Activations& x, std::span<const int> rows, Activations& out) = 0;

  // Takes about a second. Reads `weights`, this backend's own: how fast memory is depends on where it is.
  virtual MachineLimits MeasureLimits(std::span<const Matrix* const> weights) = 0;
  // How long callers have waited for the last compute thread to finish, in all.
  virtual absl::Duration waited() const = 0;
};

// What a matrix of so many values of `type` takes once the CPU backend has packed it, the padding of panels aside.
size_t PackedBytes(TensorType type, size_t values);

struct CpuBackendOptions {
  int threads = 1;             // the caller's included
  std::vector<int> cpus = {};  // pins compute thread i to cpus[i]; empty: unpinned
  std::string_view kernels = "auto";
};

// INVALID_ARGUMENT for an unknown name, FAILED_PRECONDITION when this CPU lacks the instructions.
absl::StatusOr<std::unique_ptr<Backend>> CreateCpuBackend(const CpuBackendOptions& options);

}  // namespace baton
