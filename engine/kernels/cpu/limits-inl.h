// What a CPU can do at most: loops of the instructions that the products are made of, on registers alone, and a loop
// that reads memory.
#pragma once

#include "engine/kernels/cpu/vector-inl.h"

namespace baton::cpu {

inline constexpr int kPeakChains = 8;      // hide the latency of every product instruction
inline constexpr int kRoundsPerCall = 64;  // of each chain

// Each returns the multiply-adds of `calls` calls, times two. `sink` gets what was computed, so that it is.
template <typename V>
double PeakFloats(int calls, float* sink) {
  V sums[kPeakChains];
  BATON_UNROLL for (int c = 0; c < kPeakChains; ++c) sums[c] = V::Load(sink);
  const V x = V::Load(sink);
  for (int call = 0; call < calls * kRoundsPerCall; ++call) {
    BATON_UNROLL for (int c = 0; c < kPeakChains; ++c) sums[c] = V::Fma(x, x, sums[c]);
  }
  BATON_UNROLL for (int c = 0; c < kPeakChains; ++c) sums[c].Store(sink);
  return 2.0 * calls * kRoundsPerCall * kPeakChains * V::kLanes;
}

template <typename V>
double PeakInts(int calls, float* sink) {
  typename V::Ints sums[kPeakChains];
  const auto* const bytes = reinterpret_cast<const std::byte*>(sink);
  BATON_UNROLL for (int c = 0; c < kPeakChains; ++c) sums[c] = V::Ints::Zero();
  const auto w = V::LoadBytes(bytes);
  const auto x = V::LoadFour(bytes);
  for (int call = 0; call < calls * kRoundsPerCall; ++call) {
    BATON_UNROLL for (int c = 0; c < kPeakChains; ++c) sums[c] = V::AddProducts(sums[c], w, x);
  }
  BATON_UNROLL for (int c = 0; c < kPeakChains; ++c) sums[c].ToFloats().Store(sink);
  return 2.0 * calls * kRoundsPerCall * kPeakChains * V::kLanes * 4;
}

template <typename V>
double PeakPairs(int calls, float* sink) {
  V sums[kPeakChains];
  const auto* const bytes = reinterpret_cast<const std::byte*>(sink);
  BATON_UNROLL for (int c = 0; c < kPeakChains; ++c) sums[c] = V::Load(sink);
  const auto w = V::LoadPairs(bytes);
  const auto x = V::BroadcastPair(bytes);
  for (int call = 0; call < calls * kRoundsPerCall; ++call) {
    BATON_UNROLL for (int c = 0; c < kPeakChains; ++c) sums[c] = V::AddPairProducts(sums[c], w, x);
  }
  BATON_UNROLL for (int c = 0; c < kPeakChains; ++c) sums[c].Store(sink);
  return 2.0 * calls * kRoundsPerCall * kPeakChains * V::kLanes * 2;
}

// Reads `bytes` bytes, a multiple of 8 vectors.
template <typename V>
void ReadThrough(const std::byte* data, size_t bytes, float* sink) {
  const auto* const floats = reinterpret_cast<const float*>(data);
  V largest[8];
  BATON_UNROLL for (int i = 0; i < 8; ++i) largest[i] = V::Zero();
  for (size_t at = 0; at < bytes / sizeof(float); at += 8 * V::kLanes) {
    BATON_UNROLL for (int i = 0; i < 8; ++i) largest[i] = V::Max(largest[i], V::Load(floats + at + i * V::kLanes));
  }
  BATON_UNROLL for (int i = 0; i < 8; ++i) largest[i].Store(sink);
}

}  // namespace baton::cpu
