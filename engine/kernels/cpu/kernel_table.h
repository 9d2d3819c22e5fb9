// The kernels of one instruction family, as a table of functions.
//
// Each family is one translation unit (kernels_*.cc) compiled with flags of its own. Whatever such a unit instantiates
// must belong to it alone: an inline function shared with the rest of the program, once compiled with AVX-512, could be
// the copy that the linker keeps for everyone. So those units include this header, the *-inl.h beside it, whose
// templates all depend on the family's vector type, and the intrinsics; nothing of the standard library but types. For
// the same reason this header defines no function.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/kernels/cpu/panel_format.h"

namespace baton {

enum class PageId : uint32_t;

namespace cpu {

// One thread's share of a product with a section of a packed matrix: the outputs of panels [panel_begin, panel_end).
// See PackedMatrix.
struct MatMulTask {
  const void* panels = nullptr;
  int outputs = 0;  // of the section
  int inputs = 0;
  int panel_begin = 0;
  int panel_end = 0;
  const float* x = nullptr;  // [rows, inputs]
  int rows = 0;
  std::byte* prepared = nullptr;  // x as the format wants it, if it wants it prepared
  int tile_rows = 0;              // of each prepared tile; the last one may be lower
  float* out = nullptr;           // [rows, outputs], a row every out_stride floats
  size_t out_stride = 0;
  float* scratch = nullptr;  // matmul_scratch floats of this thread
};

// Products with panels of one format.
struct MatMulKernel {
  void (*multiply)(const MatMulTask& task) = nullptr;
  // Of formats that want activations prepared: the highest tile, the bytes of a row, and what prepares one tile, the
  // rows of x being x_stride floats apart.
  int tile_rows = 0;
  size_t (*row_bytes)(int inputs) = nullptr;
  void (*prepare)(const float* x, size_t x_stride, int rows, int inputs, std::byte* tile) = nullptr;
};

// K and V are loaded and scored in blocks of so many tokens, counted from position 0.
inline constexpr int kAttentionBlockTokens = 32;

// Some neighbouring rows of one sequence.
struct AttentionMember {
  const float* q = nullptr;  // of the first row and head; the heads of a group are neighbours
  float* out = nullptr;      // likewise
  int queries = 0;
  int start_position = 0;  // of the first row
  const PageId* pages = nullptr;
};

// Attention of the members' rows, for the query heads of one KV head. The first `shared_tokens` tokens, whole blocks,
// are in the same pages for all members and before every row; each of their K and V is loaded once.
struct AttentionTask {
  const AttentionMember* members = nullptr;
  int member_count = 0;
  int shared_tokens = 0;
  size_t q_stride = 0;  // from row to row, in floats
  size_t out_stride = 0;
  int group = 0;  // query heads per KV head
  int head_dim = 0;
  const std::byte* blocks = nullptr;  // K of this KV head in page 0; V is v_offset further
  size_t block_bytes = 0;
  size_t v_offset = 0;
  int page_tokens = 0;
  float* scratch = nullptr;  // attention_scratch(all rows * group, head_dim) floats of this thread
};

// Arrays of functions are indexed by KvType, matmul by PanelFormat.
struct KernelTable {
  const char* family;
  int panel_outputs;  // outputs side by side in a panel
  PanelFormat bf16_format;
  size_t matmul_scratch;  // floats

  MatMulKernel matmul[kPanelFormats];
  size_t (*attention_scratch)(int rows, int head_dim);
  void (*attention[5])(const AttentionTask& task);
  // One token's K or V of one head, rounded to nearest, ties to even; and its scale, of types that have one.
  void (*round_head[5])(const float* x, int head_dim, std::byte* out, std::byte* scale);
  void (*rms_norm)(const float* x, int count, const float* weight, float eps, float* out);
  void (*add)(float* x, const float* y, size_t count);
  void (*silu_mul)(const float* gate, const float* up, int count, float* out);
  void (*rope)(float* x, const float* cos, const float* sin, int half_dim);

  // What the instructions give at most, see limits-inl.h; null where the family lacks them. `sink` is limit_floats
  // long.
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
