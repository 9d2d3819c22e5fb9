#include "engine/kernels/backend.h"

namespace baton {

void Backend::AddRmsNorm(Activations& x, const Activations& y, int rows, const WeightVector& weight, float eps,
                         Activations& out) {
  Add(x, y, rows);
  RmsNorm(x, rows, weight, eps, out);
}

void Backend::RotateAndWriteKv(Activations& qkv, const HeadNorms& norms, const RotaryTable& table, std::byte* kv) {
  const KvLayout& layout = *step_.layout;
  const int rows = static_cast<int>(step_.positions.size());
  const int k_col = step_.heads * layout.head_dim;
  if (norms.q != nullptr) HeadNorm(qkv, rows, 0, step_.heads, *norms.q, norms.eps);
  if (norms.k != nullptr) HeadNorm(qkv, rows, k_col, layout.kv_heads, *norms.k, norms.eps);
  Rope(qkv, 0, step_.heads + layout.kv_heads, table);  // q and k are adjacent
  WriteKv(qkv, k_col, k_col + layout.kv_heads * layout.head_dim, kv);
}

}  // namespace baton
