// SPDX-License-Identifier: Apache-2.0
// Tokens per second of Model::Forward on demo-chat, by kernel family: prefill by chunk length, decode by batch size.
// One thread; the process may be pinned from outside.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "engine/kv/page_pool.h"
#include "engine/model/model.h"
#include "tests/tiny_models.h"

namespace baton {
namespace {

constexpr int kContext = 512;
constexpr const char* kKernels[] = {"scalar", "avx2", "avx512", "avx512-vnni", "avx512-bf16"};

struct Loaded {
  std::unique_ptr<Model> model;
  std::unique_ptr<PagePool> pool;
};

// Nothing, with the benchmark marked as skipped, where the CPU lacks the instructions.
Loaded Load(benchmark::State& state, const char* kernels, int sequences) {
  auto model = Model::Load(testing::DemoModel("demo-chat"), {.kernels = kernels});
  if (!model.ok()) {
    state.SkipWithError(std::string(model.status().message()).c_str());
    return {};
  }
  const int pages = sequences * (*model)->kv_layout().pages_for(kContext + 1);
  auto pool = PagePool::Create((*model)->kv_layout(), pages);
  if (!pool.ok()) {
    state.SkipWithError("no memory");
    return {};
  }
  state.SetLabel(kernels);
  return {*std::move(model), *std::move(pool)};
}

std::vector<PageId> PagesOf(const KvLayout& layout, int sequence) {
  std::vector<PageId> pages(layout.pages_for(kContext + 1));
  for (size_t i = 0; i < pages.size(); ++i) pages[i] = PageId{static_cast<uint32_t>(sequence * pages.size() + i)};
  return pages;
}

void Prefill(benchmark::State& state) {
  const int tokens = static_cast<int>(state.range(1));
  const Loaded loaded = Load(state, kKernels[state.range(0)], 1);
  if (loaded.model == nullptr) return;
  const std::vector<TokenId> prompt(tokens, 7);
  const std::vector<PageId> pages = PagesOf(loaded.model->kv_layout(), 0);
  const SequenceInput input = {prompt, 0, pages, Want::kLastLogits};
  ForwardOutput output;
  for (auto _ : state) {
    if (!loaded.model->Forward({&input, 1}, *loaded.pool, nullptr, output).ok()) return state.SkipWithError("failed");
  }
  state.SetItemsProcessed(state.iterations() * tokens);
}
BENCHMARK(Prefill)
    ->ArgsProduct({{0, 1, 2, 3, 4}, {16, 128, 512}})
    ->ArgNames({"kernels", "tokens"})
    ->Unit(benchmark::kMillisecond);

// One step of a batch whose sequences have kContext tokens each.
void Decode(benchmark::State& state) {
  const int batch_size = static_cast<int>(state.range(1));
  const Loaded loaded = Load(state, kKernels[state.range(0)], batch_size);
  if (loaded.model == nullptr) return;
  const std::vector<TokenId> token = {7};
  std::vector<std::vector<PageId>> pages;
  pages.reserve(batch_size);
  for (int i = 0; i < batch_size; ++i) pages.push_back(PagesOf(loaded.model->kv_layout(), i));
  std::vector<SequenceInput> batch;
  batch.reserve(batch_size);
  for (int i = 0; i < batch_size; ++i) batch.push_back({token, kContext, pages[i], Want::kLastLogits});
  ForwardOutput output;
  for (auto _ : state) {
    if (!loaded.model->Forward(batch, *loaded.pool, nullptr, output).ok()) return state.SkipWithError("failed");
  }
  state.SetItemsProcessed(state.iterations() * batch_size);
}
BENCHMARK(Decode)
    ->ArgsProduct({{0, 1, 2, 3, 4}, {1, 8, 32}})
    ->ArgNames({"kernels", "batch"})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace baton
