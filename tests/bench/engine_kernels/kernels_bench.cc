// SPDX-License-Identifier: Apache-2.0
// Speed of the CPU kernels, each family this CPU has. Arguments: rows (or tokens of context), then threads.
//   weight_bytes/s: weights read, what bounds decoding; flop/s: what bounds prefill; kv_bytes/s: pages read, as often
//   as there are sequences that have them.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/kernels/backend.h"
#include "engine/kv/layout.h"

namespace baton {
namespace {

using benchmark::Counter;

std::unique_ptr<Backend> NewBackend(benchmark::State& state, const std::string& family) {
  auto backend = CreateCpuBackend({.threads = static_cast<int>(state.range(1)), .kernels = family});
  if (backend.ok()) return *std::move(backend);
  state.SkipWithError(std::string(backend.status().message()).c_str());
  return nullptr;
}

std::unique_ptr<Activations> NewActivations(Backend& backend, int rows, int cols) {
  auto x = *backend.Allocate(rows, cols);
  std::fill_n(backend.HostData(*x), size_t(rows) * cols, 0.01f);
  return x;
}

// 2048 x 2048, several of them in turn: more weights than the caches hold, as in a model.
void MatMul(benchmark::State& state, const std::string& family, TensorType type) {
  constexpr int kSize = 2048;
  constexpr size_t kMatrices = 24;
  const auto backend = NewBackend(state, family);
  if (backend == nullptr) return;
  const int rows = static_cast<int>(state.range(0));
  const std::vector<std::byte> weights(kSize * BytesOf(type, kSize), std::byte{0x11});
  std::vector<std::unique_ptr<Matrix>> matrices;
  while (matrices.size() < kMatrices) matrices.push_back(*backend->Pack({weights.data(), type, kSize, kSize}));
  const auto x = NewActivations(*backend, rows, kSize);
  const auto out = NewActivations(*backend, rows, kSize);
  size_t next = 0;
  for (auto _ : state) backend->MatMul(*matrices[next++ % kMatrices], *x, rows, *out);
  const auto iterations = static_cast<double>(state.iterations());
  state.counters["weight_bytes"] =
      Counter(iterations * static_cast<double>(weights.size()), Counter::kIsRate, Counter::kIs1024);
  state.counters["flop"] = Counter(iterations * 2.0 * rows * kSize * kSize, Counter::kIsRate);
}

struct AttentionShape {
  std::string name;
  int sequences;
  int queries;          // new rows of each
  bool shared = false;  // all but the new rows are in the same pages
  KvType dtype = KvType::kBF16;
};

// 8 query heads per KV head of 128, as in Llama 3, after range(0) tokens of context.
void Attention(benchmark::State& state, const std::string& family, const AttentionShape& shape) {
  const KvBlock block{.kv_heads = 4, .head_dim = 128, .page_tokens = 16, .dtype = shape.dtype};
  const auto [name, sequences, queries, shared, dtype] = shape;
  constexpr int kHeads = 32;
  const auto backend = NewBackend(state, family);
  if (backend == nullptr) return;
  const int context = static_cast<int>(state.range(0));
  const int pages_each = KvLayout(1, block).pages_for(context + queries);
  std::vector<std::byte> blocks(size_t(sequences) * pages_each * block.bytes(), std::byte{0x11});
  std::vector<std::vector<PageId>> pages(sequences);
  std::vector<SequenceRows> batch;
  for (int s = 0; s < sequences; ++s) {
    for (int p = 0; p < pages_each; ++p) {
      const bool own = !shared || p >= context / block.page_tokens;
      pages[s].push_back(PageId((own ? s * pages_each : 0) + p));
    }
    batch.push_back({.first_row = s * queries, .rows = queries, .start_position = context, .pages = pages[s]});
  }
  const auto qkv = NewActivations(*backend, sequences * queries, (kHeads + 2 * block.kv_heads) * block.head_dim);
  const auto out = NewActivations(*backend, sequences * queries, kHeads * block.head_dim);
  const GroupRows group{.block = block, .block_stride = block.bytes(), .sequences = batch};
  backend->BeginStep({.heads = kHeads, .groups = {&group, 1}});
  for (auto _ : state) backend->Attention(*qkv, RowSet::kAll, {.data = blocks.data()}, *out);
  const auto iterations = static_cast<double>(state.iterations());
  const double tokens = context + 0.5 * (queries + 1);
  state.counters["kv_bytes"] =
      Counter(iterations * static_cast<double>(blocks.size()), Counter::kIsRate, Counter::kIs1024);
  state.counters["flop"] =
      Counter(iterations * 4.0 * sequences * queries * tokens * kHeads * block.head_dim, Counter::kIsRate);
}

void RegisterAll() {
  for (const std::string family : {"scalar", "avx2", "avx512", "avx512-vnni", "avx512-bf16"}) {
    for (const TensorType type : {TensorType::kBF16, TensorType::kF16, TensorType::kF32, TensorType::kQ8_0,
                                  TensorType::kQ4_0, TensorType::kQ4_K, TensorType::kQ6_K}) {
      auto* const bench = benchmark::RegisterBenchmark(
          ("MatMul/" + std::string(InfoOf(type).name) + "/" + family).c_str(), MatMul, family, type);
      bench->ArgNames({"rows", "threads"})->UseRealTime()->Unit(benchmark::kMicrosecond);
      for (const int rows : {1, 2, 4, 8, 16, 32, 64, 512}) bench->Args({rows, 1})->Args({rows, 2});
    }
    for (const AttentionShape& shape :
         {AttentionShape{"decode1", 1, 1}, AttentionShape{"decode8", 8, 1}, AttentionShape{"prefill", 1, 256},
          AttentionShape{"decode8_shared", 8, 1, true}, AttentionShape{"decode8_f32", 8, 1, false, KvType::kF32},
          AttentionShape{"decode8_int8", 8, 1, false, KvType::kInt8},
          AttentionShape{"decode8_fp8", 8, 1, false, KvType::kFp8}}) {
      auto* const bench =
          benchmark::RegisterBenchmark(("Attention/" + shape.name + "/" + family).c_str(), Attention, family, shape);
      bench->ArgNames({"context", "threads"})->UseRealTime()->Unit(benchmark::kMicrosecond);
      for (const int context : {256, 4096}) bench->Args({context, 1})->Args({context, 2});
    }
  }
}

const bool kRegistered = (RegisterAll(), true);

}  // namespace
}  // namespace baton
