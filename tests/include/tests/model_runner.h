// SPDX-License-Identifier: Apache-2.0
// Runs token sequences through a Model for tests: pages, chunks, logits.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "engine/kv/page_pool.h"
#include "engine/model/model.h"
#include "tests/kernel_families.h"
#include "tests/status_matchers.h"

namespace baton::testing {

inline std::unique_ptr<Model> LoadModel(const std::filesystem::path& folder, const ModelOptions& options = {}) {
  auto model = Model::Load(folder, options);
  EXPECT_OK(model);
  return model.ok() ? *std::move(model) : nullptr;
}

inline std::unique_ptr<PagePool> MakePool(const Model& model, uint32_t pages) {
  auto pool = PagePool::Create(model.kv_layout(), pages);
  EXPECT_OK(pool);
  return pool.ok() ? *std::move(pool) : nullptr;
}

// A sequence under way: its tokens so far, those computed, and its pages.
struct PagedSequence {
  PagedSequence(PagePool& pool, std::vector<TokenId> prompt, int max_tokens) : tokens(std::move(prompt)) {
    auto allocated = pool.Allocate(pool.layout().pages_for(max_tokens));
    EXPECT_OK(allocated);
    if (allocated.ok()) owned = *std::move(allocated);
    for (const PageRef& page : owned) pages.push_back(page.id());
  }

  // The next `count` tokens, or what is left of them.
  SequenceInput Next(int count, Want want) const {
    const std::span<const TokenId> left = std::span(tokens).subspan(computed);
    return {left.first(std::min<size_t>(count, left.size())), computed, pages, want};
  }
  bool done() const { return computed == static_cast<int>(tokens.size()); }

  std::vector<TokenId> tokens;
  int computed = 0;
  std::vector<PageRef> owned;
  std::vector<PageId> pages;
};

// Logits of every position, [tokens, vocab], computed `chunk` tokens at a time.
inline std::vector<float> AllLogits(Model& model, PagePool& pool, PagedSequence& sequence, int chunk) {
  std::vector<float> logits;
  ForwardOutput output;
  while (!sequence.done()) {
    const SequenceInput input = sequence.Next(chunk, Want::kAllLogits);
    const absl::Status status = model.Forward({&input, 1}, pool, nullptr, output);
    EXPECT_OK(status);
    if (!status.ok()) return logits;
    logits.insert(logits.end(), output.values.begin(), output.values.end());
    sequence.computed += static_cast<int>(input.tokens.size());
  }
  return logits;
}

inline std::vector<float> AllLogits(Model& model, const std::vector<TokenId>& tokens) {
  const int length = static_cast<int>(tokens.size());
  const std::unique_ptr<PagePool> pool = MakePool(model, model.kv_layout().pages_for(length));
  PagedSequence sequence(*pool, tokens, length);
  return AllLogits(model, *pool, sequence, length);
}

// max|a - b| / max|b|, or infinity when the sizes differ or a value is not finite.
inline double RelativeError(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size() || b.empty()) return INFINITY;
  double difference = 0;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return INFINITY;
    difference = std::max(difference, std::abs(double{a[i]} - b[i]));
    largest = std::max(largest, std::abs(double{b[i]}));
  }
  return difference / largest;
}

// The lowest id among the highest logits.
inline TokenId Argmax(std::span<const float> logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

inline std::vector<TokenId> RandomTokens(int count, int vocab_size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % vocab_size);
  return tokens;
}

}  // namespace baton::testing
