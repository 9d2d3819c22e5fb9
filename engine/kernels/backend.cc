// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/backend.h"

namespace baton {

void Backend::AddRmsNorm(Activations& x, const Activations& y, int rows, const WeightVector& weight, float eps,
                         Activations& out) {
  Add(x, y, rows);
  RmsNorm(x, rows, weight, eps, out);
}

void Backend::RotateAndWriteKv(Activations& qkv, const HeadNorms& norms, const RotaryTable& table, LayerKv kv) {
  const KvBlock& block = step_.groups[kv.group].block;
  const int rows = static_cast<int>(step_.positions.size());
  const int k_col = step_.heads * block.head_dim;
  if (norms.q != nullptr) HeadNorm(qkv, rows, 0, step_.heads, *norms.q, norms.eps);
  if (norms.k != nullptr) HeadNorm(qkv, rows, k_col, block.kv_heads, *norms.k, norms.eps);
  Rope(qkv, 0, step_.heads + block.kv_heads, table);  // q and k are adjacent
  WriteKv(qkv, k_col, k_col + block.kv_heads * block.head_dim, kv);
}

}  // namespace baton
