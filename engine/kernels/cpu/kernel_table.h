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

namespace baton {

enum class PageId : uint32_t;
enum class DType : uint8_t;

namespace cpu {

// One thread's share of a product with a packed matrix: the outputs of panels [panel_begin, panel_end). See
// PackedMatrix.
struct MatMulTask {
  const void* panels = nullptr;
  int outputs = 0;
  int inputs = 0;
  int panel_begin = 0;
  int panel_end = 0;
  const float* x = nullptr;  // [rows, inputs]
  int rows = 0;
  float* out = nullptr;      // [rows, outputs]
  float* scratch = nullptr;  // matmul_scratch floats of this thread
};

// Attention of `queries` neighbouring rows of one sequence, for the query heads of one KV head.
struct AttentionTask {
  const float* q = nullptr;  // of the first row and head; the heads of a group are neighbours
  float* out = nullptr;      // likewise
  size_t q_stride = 0;       // from row to row, in floats
  size_t out_stride = 0;
  int queries = 0;
  int group = 0;  // query heads per KV head
  int head_dim = 0;
  int start_position = 0;             // of the first row
  const std::byte* blocks = nullptr;  // K of this KV head in page 0; V is v_offset further
  size_t block_bytes = 0;
  size_t v_offset = 0;
  const PageId* pages = nullptr;
  int page_tokens = 0;
  float* scratch = nullptr;  // attention_scratch(queries * group, head_dim) floats of this thread
};

// Functions of arrays are indexed by DType.
struct KernelTable {
  const char* family;
  int panel_outputs;      // outputs side by side in a panel
  size_t matmul_scratch;  // floats

  void (*matmul[3])(const MatMulTask& task);
  size_t (*attention_scratch)(int rows, int head_dim);
  void (*attention[3])(const AttentionTask& task);
  // KV rounding, to nearest, ties to even.
  void (*round[3])(const float* x, int count, void* out);
  void (*rms_norm)(const float* x, int count, const float* weight, float eps, float* out);
  void (*add)(float* x, const float* y, size_t count);
  void (*silu_mul)(const float* gate, const float* up, int count, float* out);
  void (*rope)(float* x, const float* cos, const float* sin, int half_dim);
};

extern const KernelTable kScalarKernels;
#if defined(__x86_64__)
extern const KernelTable kAvx2Kernels;
extern const KernelTable kAvx512Kernels;
#endif

}  // namespace cpu
}  // namespace baton
