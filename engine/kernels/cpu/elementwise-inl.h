// SPDX-License-Identifier: Apache-2.0
// Kernels on one row: RMS norm, addition, SiLU, rotary embedding.
#pragma once

#include "engine/kernels/cpu/vector-inl.h"

namespace baton::cpu {

template <typename V>
void RmsNorm(const float* x, int count, const float* weight, float eps, float* out) {
  V squares = V::Zero();
  ForVectors<V>(count, [&](size_t i, int partial) {
    const V v = LoadSome<V>(x + i, partial);
    squares = V::Fma(v, v, squares);
  });
  const V scale = V::Set(1.0f / V::Sqrt(squares.SumLanes() / static_cast<float>(count) + eps));
  ForVectors<V>(count, [&](size_t i, int partial) {
    StoreSome(LoadSome<V>(x + i, partial) * scale * LoadSome<V>(weight + i, partial), out + i, partial);
  });
}

template <typename V>
void Add(float* x, const float* y, size_t count) {
  ForVectors<V>(count, [&](size_t i, int partial) {
    StoreSome(LoadSome<V>(x + i, partial) + LoadSome<V>(y + i, partial), x + i, partial);
  });
}

// out = gate / (1 + e^-gate) * up
template <typename V>
void SiluMul(const float* gate, const float* up, int count, float* out) {
  const V one = V::Set(1.0f);
  ForVectors<V>(count, [&](size_t i, int partial) {
    const V g = LoadSome<V>(gate + i, partial);
    StoreSome(g / (one + Exp(V::Zero() - g)) * LoadSome<V>(up + i, partial), out + i, partial);
  });
}

template <typename V>
void Rope(float* x, const float* cos, const float* sin, int half_dim) {
  float* y = x + half_dim;
  ForVectors<V>(half_dim, [&](size_t i, int partial) {
    const V a = LoadSome<V>(x + i, partial);
    const V b = LoadSome<V>(y + i, partial);
    const V c = LoadSome<V>(cos + i, partial);
    const V s = LoadSome<V>(sin + i, partial);
    StoreSome(V::Fma(a, c, V::Zero() - b * s), x + i, partial);
    StoreSome(V::Fma(b, c, a * s), y + i, partial);
  });
}

}  // namespace baton::cpu
