// SPDX-License-Identifier: Apache-2.0
// Peak rates of a CPU: loops of the products' instructions on registers alone, and a loop that reads memory.
#pragma once

#include "engine/kernels/cpu/vector-inl.h"

namespace baton::cpu {

inline constexpr int kPeakChains = 8;      // independent sums, enough to hide the latency of every product instruction
inline constexpr int kRoundsPerCall = 64;  // products per chain

// Stores the sum of all chains, so that the compiler keeps every chain.
template <typename V>
void StoreSum(const V (&sums)[kPeakChains], float* sink) {
  V total = V::Zero();
  BATON_UNROLL for (int c = 0; c < kPeakChains; ++c) total = total + sums[c];
  total.Store(sink);
}

// The Peak functions return the number of operations done; a multiply-add counts as two. The chains begin with
// different values because the compiler would merge equal chains.
template <typename V>
double PeakFloats(int calls, float* sink) {
  V sums[kPeakChains];
  BATON_UNROLL for (int c = 0; c < kPeakChains; ++c) sums[c] = V::Set(static_cast<float>(c));
  const V x = V::Load(sink);
  for (int round = 0; round < calls * kRoundsPerCall; ++round) {
    BATON_UNROLL for (int c = 0; c < kPeakChains; ++c) sums[c] = V::Fma(x, x, sums[c]);
  }
  StoreSum(sums, sink);
  return 2.0 * calls * kRoundsPerCall * kPeakChains * V::kLanes;
}

template <typename V>
double PeakInts(int calls, float* sink) {
  typename V::Ints sums[kPeakChains];
  BATON_UNROLL for (int c = 0; c < kPeakChains; ++c) {
    const int32_t start = c;
    sums[c] = V::Ints::Broadcast(&start);
  }
  const auto* const bytes = reinterpret_cast<const std::byte*>(sink);
  const auto w = V::LoadBytes(bytes);
  const auto x = V::LoadFour(bytes);
  for (int round = 0; round < calls * kRoundsPerCall; ++round) {
    BATON_UNROLL for (int c = 0; c < kPeakChains; ++c) sums[c] = V::AddProducts(sums[c], w, x);
  }
  V floats[kPeakChains];
  BATON_UNROLL for (int c = 0; c < kPeakChains; ++c) floats[c] = sums[c].ToFloats();
  StoreSum(floats, sink);
  return 2.0 * calls * kRoundsPerCall * kPeakChains * V::kLanes * 4;
}

template <typename V>
double PeakPairs(int calls, float* sink) {
  V sums[kPeakChains];
  BATON_UNROLL for (int c = 0; c < kPeakChains; ++c) sums[c] = V::Set(static_cast<float>(c));
  const auto* const bytes = reinterpret_cast<const std::byte*>(sink);
  const auto w = V::LoadPairs(bytes);
  const auto x = V::BroadcastPair(bytes);
  for (int round = 0; round < calls * kRoundsPerCall; ++round) {
    BATON_UNROLL for (int c = 0; c < kPeakChains; ++c) sums[c] = V::AddPairProducts(sums[c], w, x);
  }
  StoreSum(sums, sink);
  return 2.0 * calls * kRoundsPerCall * kPeakChains * V::kLanes * 2;
}

// Reads `bytes` bytes, which must be a multiple of 8 vectors.
template <typename V>
void ReadThrough(const std::byte* data, size_t bytes, float* sink) {
  const auto* const floats = reinterpret_cast<const float*>(data);
  V largest[8];
  BATON_UNROLL for (int i = 0; i < 8; ++i) largest[i] = V::Zero();
  for (size_t at = 0; at < bytes / sizeof(float); at += 8 * V::kLanes) {
    BATON_UNROLL for (int i = 0; i < 8; ++i) largest[i] = V::Max(largest[i], V::Load(floats + at + i * V::kLanes));
  }
  BATON_UNROLL for (int i = 1; i < 8; ++i) largest[0] = V::Max(largest[0], largest[i]);
  largest[0].Store(sink);
}

}  // namespace baton::cpu
