// SPDX-License-Identifier: Apache-2.0
// The demo models against tests/golden/demo/golden.json, which another implementation computed in float32: the best 20
// logits after each prompt and the 48 tokens that follow greedily, on every kernel family.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "tests/files.h"
#include "tests/model_runner.h"
#include "tests/status_matchers.h"
#include "tests/tiny_models.h"

namespace baton {
namespace {

using testing::PagedSequence;

struct GoldenCase {
  std::vector<TokenId> prompt;
  std::vector<TokenId> top_ids;
  std::vector<float> top_logits;
  std::vector<TokenId> greedy;
};

std::vector<GoldenCase> ReadGolden(const std::string& key) {
  const auto json = nlohmann::json::parse(testing::ReadFile(testing::SourceFolder() / "tests/golden/demo/golden.json"));
  std::vector<GoldenCase> cases;
  for (const auto& entry : json.at("cases")) {
    const auto& model = entry.at(key);
    cases.push_back({entry.at("prompt_ids"), model.at("top_ids"), model.at("top_logits"), model.at("greedy_ids")});
  }
  return cases;
}

std::vector<float> LogitsAt(std::span<const float> logits, const std::vector<TokenId>& ids) {
  std::vector<float> picked;
  picked.reserve(ids.size());
  for (const TokenId id : ids) picked.push_back(logits[id]);
  return picked;
}

// Model folder, its key in golden.json, kernels.
using Parameters = std::tuple<std::pair<std::string, std::string>, std::string>;

class GoldenDemo : public ::testing::TestWithParam<Parameters> {
 protected:
  void SetUp() override { SKIP_WITHOUT_CPU_FOR(std::get<1>(GetParam())); }
};

TEST_P(GoldenDemo, PrefillsAndDecodesAsTheReferenceDoes) {
  const auto& [folder, key] = std::get<0>(GetParam());
  const std::vector<GoldenCase> cases = ReadGolden(key);
  ASSERT_EQ(cases.size(), 12U);
  const std::unique_ptr<Model> model = testing::LoadModel(
      testing::DemoModel(folder), {.threads = 2, .kernels = std::get<1>(GetParam()), .kv_dtype = KvType::kF32});
  ASSERT_NE(model, nullptr);

  // Products of BF16 pairs round the activations too.
  const double tolerance = std::get<1>(GetParam()) == "avx512-bf16" ? 1e-2 : 1e-4;
  // Given all prompts in one batch
  const std::unique_ptr<PagePool> pool = testing::MakePool(*model, 256);
  std::vector<PagedSequence> sequences;
  sequences.reserve(cases.size());
  for (const GoldenCase& c : cases) sequences.emplace_back(*pool, c.prompt, c.prompt.size() + c.greedy.size());

  ForwardOutput output;
  for (size_t step = 0; step < cases[0].greedy.size(); ++step) {
    // when they are prefilled, then decoded a token at a time,
    std::vector<SequenceInput> batch;
    batch.reserve(sequences.size());
    for (const PagedSequence& sequence : sequences) batch.push_back(sequence.Next(4096, Want::kLastLogits));
    ASSERT_OK(model->Forward(batch, *pool, nullptr, output));

    // then the first logits are those of the reference, and so is every token.
    for (size_t i = 0; i < cases.size(); ++i) {
      const std::span<const float> logits = output.row(output.rows[i].first);
      if (step == 0) {
        EXPECT_LT(testing::RelativeError(LogitsAt(logits, cases[i].top_ids), cases[i].top_logits), tolerance);
      }
      const TokenId token = testing::Argmax(logits);
      ASSERT_EQ(token, cases[i].greedy[step]) << "prompt " << i << ", output index " << step;
      sequences[i].computed = static_cast<int>(sequences[i].tokens.size());
      sequences[i].tokens.push_back(token);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenDemo,
                         ::testing::Combine(::testing::Values(std::pair("demo-chat", "chat"),
                                                              std::pair("demo-draft", "draft")),
                                            ::testing::ValuesIn(testing::KernelFamilies())),
                         [](const auto& info) {
                           return std::get<0>(info.param).second + "_" + testing::AsTestName(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace baton
