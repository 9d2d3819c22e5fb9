// SPDX-License-Identifier: Apache-2.0
// Models in GGUF compute what the same models in a folder do.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/tools/make_model.h"
#include "cli/tools/quantize_model.h"
#include "engine/formats/model_folder.h"
#include "engine/model/model.h"
#include "small_preset.h"
#include "tests/files.h"
#include "tests/model_runner.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "tests/tiny_models.h"
#include "text/tokenizer/tokenizer.h"

namespace baton {
namespace {

constexpr int kTokens = 40;

std::vector<float> Logits(const std::filesystem::path& path, const std::vector<TokenId>& tokens,
                          const ModelOptions& options = {}) {
  const std::unique_ptr<Model> model = testing::LoadModel(path, options);
  return model == nullptr ? std::vector<float>() : testing::AllLogits(*model, tokens);
}

// Text that the demo model knows how to go on with: on random tokens a small rounding makes a large difference.
std::vector<TokenId> DemoTokens() {
  const auto texts = LoadTextAssets(testing::DemoModel("demo-chat"));
  const auto tokenizer = Tokenizer::Create(texts->at("tokenizer.json"), texts->at("tokenizer_config.json"));
  const std::string text = testing::ReadFile(testing::SourceFolder() / "tests/golden/demo/heldout.txt");
  return *(*tokenizer)->Encode(text.substr(0, 300), true);
}

std::vector<float> DemoLogits(const std::filesystem::path& path) {
  return Logits(path, DemoTokens(), {.kernels = "scalar", .kv_dtype = KvType::kF32});
}

TEST(GgufModel, OfTheSameFloatsGivesTheSameBits) {
  const testing::TempFolder folder;
  const ModelPreset preset = testing::SmallPreset(/*head_dim=*/32);
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBF16}) {
    const std::string name(InfoOf(type).name);
    MakeModelOptions options = {.preset = preset, .type = type};
    ASSERT_OK(MakeModel(options, folder.path() / (name + ".gguf")));
    options.format = ModelFormat::kSafetensors;
    ASSERT_OK(MakeModel(options, folder.path() / name));
    const std::vector<TokenId> tokens = testing::RandomTokens(kTokens, preset.vocab_size, 7);
    const std::vector<float> logits = Logits(folder.path() / (name + ".gguf"), tokens);
    EXPECT_EQ(logits, Logits(folder.path() / name, tokens)) << name;
    EXPECT_EQ(logits.size(), size_t{kTokens} * preset.vocab_size);
  }
}

TEST(GgufModel, OfTheDemoModelGivesTheSameBits) {
  const testing::TempFolder folder;
  const std::filesystem::path path = folder.path() / "m.gguf";
  ASSERT_OK(QuantizeModel(testing::DemoModel("demo-chat"), path, {.type = TensorType::kBF16}));
  EXPECT_EQ(Logits(path, DemoTokens()), Logits(testing::DemoModel("demo-chat"), DemoTokens()));
}

TEST(GgufModel, OfAnotherProgramIsNearTheFolder) {
  const auto folder = testing::SharedData("demo-model/gguf");
  if (!folder.ok()) GTEST_SKIP() << folder.status().message();
  const std::vector<float> expected = DemoLogits(testing::DemoModel("demo-chat"));
  const std::pair<const char*, double> cases[] = {
      {"BF16", 0}, {"F16", 1e-3}, {"Q8_0", 0.05}, {"Q6_K", 0.1}, {"Q5_K_M", 0.2}};
  for (const auto& [type, tolerance] : cases) {
    const std::filesystem::path path = *folder / ("demo-chat-" + std::string(type) + ".gguf");
    EXPECT_LE(testing::RelativeError(DemoLogits(path), expected), tolerance) << type;
  }
  for (const std::string type : {"Q2_K", "TQ2_0", "IQ4_NL"}) {
    const auto model = Model::Load(*folder / ("demo-chat-" + type + ".gguf"), {});
    EXPECT_TRUE(testing::Fails(model, absl::StatusCode::kInvalidArgument, ".weight) has dtype "));
    EXPECT_TRUE(testing::Fails(model, absl::StatusCode::kInvalidArgument, ", which is not supported")) << type;
  }
}

// A quantized model differs from its original by as much as its weights do.
TEST(GgufModel, QuantizedIsNearTheOriginal) {
  const testing::TempFolder folder;
  const std::vector<float> expected = DemoLogits(testing::DemoModel("demo-chat"));
  for (const auto& [type, tolerance] : {std::pair(TensorType::kQ8_0, 0.05), {TensorType::kQ4_0, 0.6}}) {
    const std::filesystem::path path = folder.path() / (std::string(InfoOf(type).name) + ".gguf");
    ASSERT_OK(QuantizeModel(testing::DemoModel("demo-chat"), path, {.type = type}));
    const double error = testing::RelativeError(DemoLogits(path), expected);
    EXPECT_LT(error, tolerance) << InfoOf(type).name;
    EXPECT_GT(error, 0);
  }
}

}  // namespace
}  // namespace baton
