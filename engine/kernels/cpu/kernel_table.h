// SPDX-License-Identifier: Apache-2.0
// The kernels of one instruction family, as a table of functions.
//
// Each family is one translation unit (kernels_*.cc) with its own compiler flags. Other units must not use an inline
// function that such a unit instantiates: the linker might keep the AVX-512 copy for the whole program. Hence the
// rules:
//   - Such a unit includes only this header, the *-inl.h files and the intrinsics; of the standard library, types only.
//   - All templates in *-inl.h depend on the family's vector type.
//   - This header defines no function.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/kernels/cpu/panel_format.h"

namespace baton {

enum class PageId : uint32_t;

namespace cpu {

// A thread's share of x w^T: the outputs of panels [panel_begin, panel_end) of one section. See PackedMatrix.
struct MatMulTask {
  const void* panels = nullptr;
  int outputs = 0;  // of the section
  int inputs = 0;
  int panel_begin = 0;
  int panel_end = 0;
  const float* x = nullptr;  // [rows, inputs]
  int rows = 0;
  std::byte* prepared = nullptr;  // x in the format's own layout, for formats with MatMulKernel::prepare
  int tile_rows = 0;              // of each prepared tile; the last tile may have fewer
  float* out = nullptr;           // [rows, outputs]; rows are out_stride floats apart
  size_t out_stride = 0;
  float* scratch = nullptr;  // this thread's KernelTable::matmul_scratch floats
};

// Products with panels of one format. The members after `multiply` are set only if the format needs prepared
// activations.
struct MatMulKernel {
  void (*multiply)(const MatMulTask& task) = nullptr;
  int tile_rows = 0;  // rows of the largest tile
  size_t (*row_bytes)(int inputs) = nullptr;
  // Prepares one tile. Rows of x are x_stride floats apart.
  void (*prepare)(const float* x, size_t x_stride, int rows, int inputs, std::byte* tile) = nullptr;
};

// Tokens of the blocks in which K and V are loaded and scored, counted from position 0.
inline constexpr int kAttentionBlockTokens = 32;

// Consecutive rows of one sequence.
struct AttentionMember {
  const float* q = nullptr;  // first row, first head; the heads of a group are adjacent
  float* out = nullptr;      // same place in the output
  int queries = 0;
  int start_position = 0;  // position of the first row
  const PageId* pages = nullptr;
};

// Attention of the members' rows, for the query heads of one KV head. All members have the first `shared_tokens` tokens
// (whole blocks, before every row) in the same pages. The kernel loads their K and V once.
struct AttentionTask {
  const AttentionMember* members = nullptr;
  int member_count = 0;
  int shared_tokens = 0;
  size_t q_stride = 0;  // floats between rows
  size_t out_stride = 0;
  int group = 0;  // query heads per KV head
  int head_dim = 0;
  const std::byte* blocks = nullptr;  // K of this KV head in page 0; V is v_offset bytes further
  size_t block_bytes = 0;
  size_t v_offset = 0;
  int page_tokens = 0;
  float* scratch = nullptr;  // this thread's attention_scratch(rows * group, head_dim) floats
};

// Function arrays are indexed by KvType, `matmul` by PanelFormat.
struct KernelTable {
  const char* family;
  int panel_outputs;  // outputs per panel
  PanelFormat bf16_format;
  size_t matmul_scratch;  // floats

  MatMulKernel matmul[kPanelFormats];
  size_t (*attention_scratch)(int rows, int head_dim);
  void (*attention[5])(const AttentionTask& task);
  // Rounds one token's K or V of one head to nearest, ties to even. Writes `scale` for types that have scales.
  void (*round_head[5])(const float* x, int head_dim, std::byte* out, std::byte* scale);
  void (*rms_norm)(const float* x, int count, const float* weight, float eps, float* out);
  void (*add)(float* x, const float* y, size_t count);
  void (*silu_mul)(const float* gate, const float* up, int count, float* out);
  void (*rope)(float* x, const float* cos, const float* sin, int half_dim);

  // Peak rates, see limits-inl.h; null if the family lacks the instructions. `sink` holds limit_floats floats.
  int limit_floats;
  double (*peak_floats)(int calls, float* sink);
  double (*peak_ints)(int calls, float* sink);
  double (*peak_pairs)(int calls, float* sink);
  void (*read_through)(const std::byte* data, size_t bytes, float* sink);
};

extern const KernelTable kScalarKernels;
#if defined(__x86_64__)
extern const KernelTable kAvx2Kernels;
extern const KernelTable kAvx512Kernels;
extern const KernelTable kAvx512VnniKernels;
extern const KernelTable kAvx512Bf16Kernels;
#endif

}  // namespace cpu
}  // namespace baton
