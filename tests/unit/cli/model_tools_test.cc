// Making models and looking at them, without the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "cli/models/make_model.h"
#include "cli/models/random_weights.h"
#include "cli/models/synthetic_vocabulary.h"
#include "engine/formats/block_codec.h"
#include "engine/formats/checkpoint.h"
#include "engine/formats/model_folder.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"

namespace baton {
namespace {

using testing::Fails;
using testing::kInvalid;

ModelPreset SmallPreset() {
  return {.name = "small",
          .hidden_size = 64,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 16,
          .ffn_size = 96,
          .vocab_size = 1100,
          .max_positions = 512,
          .tied_embeddings = false,
          .rope_theta = 500000,
          .rope_scaling = Llama3Scaling{.factor = 32}};
}

std::vector<float> ValuesOf(const Tensor& tensor) {
  int64_t count = 1;
  for (const int64_t size : tensor.shape) count *= size;
  std::vector<float> values(count);
  DecodeBlocks(*tensor.type, tensor.data.data(), values.size(), values.data());
  return values;
}

TEST(RandomWeights, AreNearlyNormalAndTheSameForTheSamePlace) {
  std::vector<float> values(100'000);
  FillRandomRow(1, 2, 3, 0.02f, values);
  double sum = 0;
  double squares = 0;
  for (const float value : values) {
    sum += value;
    squares += double{value} * value;
    EXPECT_LT(std::fabs(value), 0.07f);
  }
  EXPECT_NEAR(sum / static_cast<double>(values.size()), 0, 3e-4);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(values.size())), 0.02, 2e-4);
  std::vector<float> again(10);
  FillRandomRow(1, 2, 3, 0.02f, again);
  EXPECT_TRUE(std::equal(again.begin(), again.end(), values.begin()));
  for (const auto& [seed, tensor, row] : {std::tuple(2, 2, 3), {1, 3, 3}, {1, 2, 4}}) {
    std::vector<float> other(10);
    FillRandomRow(seed, tensor, row, 0.02f, other);
    EXPECT_NE(other, again);
  }
}

TEST(SyntheticVocabulary, HasOneTokenPerIdAndAMergeForEachRun) {
  for (const int size : {1024, 32000}) {
    const SyntheticVocabulary vocabulary = MakeSyntheticVocabulary(size);
    EXPECT_EQ(vocabulary.tokens.size(), size);
    EXPECT_EQ(vocabulary.types.size(), size);
    EXPECT_EQ(vocabulary.merges.size(), size - 256 - 6);
    EXPECT_EQ(std::set(vocabulary.tokens.begin(), vocabulary.tokens.end()).size(), size);
    EXPECT_EQ(vocabulary.tokens[vocabulary.bos], "<|begin_of_text|>");
    EXPECT_EQ(vocabulary.tokens[vocabulary.eos], "<|end|>");
  }
}

TEST(MakeModel, MakesTheSameModelInEitherFormat) {
  const testing::TempFolder folder;
  MakeModelOptions options = {.preset = SmallPreset(), .type = TensorType::kF16, .threads = 3};
  ASSERT_OK_AND_ASSIGN(const MadeModel gguf, MakeModel(options, folder.path() / "m.gguf"));
  options.format = ModelFormat::kSafetensors;
  options.threads = 1;
  ASSERT_OK_AND_ASSIGN(const MadeModel safetensors, MakeModel(options, folder.path() / "m"));
  EXPECT_EQ(gguf.parameters, safetensors.parameters);
  EXPECT_EQ(gguf.bytes, std::filesystem::file_size(folder.path() / "m.gguf"));

  ASSERT_OK_AND_ASSIGN(const Checkpoint a, Checkpoint::Open(folder.path() / "m.gguf"));
  ASSERT_OK_AND_ASSIGN(const Checkpoint b, Checkpoint::Open(folder.path() / "m"));
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  EXPECT_EQ(a.tensors().size(), 1 + 2 * 9 + 2);
  for (size_t t = 0; t < a.tensors().size(); ++t) {
    EXPECT_EQ(a.tensors()[t].name, b.tensors()[t].name);
    ASSERT_EQ(a.tensors()[t].shape, b.tensors()[t].shape);
    const std::vector<float> x = ValuesOf(a.tensors()[t]);
    const std::vector<float> y = ValuesOf(b.tensors()[t]);
    const int heads = a.tensors()[t].interleaved_heads;
    if (heads == 0) {
      EXPECT_EQ(x, y) << a.tensors()[t].name;
      continue;
    }
    const int head_dim = 16;
    for (int row = 0; row < heads * head_dim; ++row) {
      const int i = row % head_dim;
      const int in_file = row - i + (i < 8 ? 2 * i : 2 * (i - 8) + 1);
      EXPECT_TRUE(std::equal(&y[row * 64], &y[row * 64] + 64, &x[in_file * 64])) << a.tensors()[t].name << " " << row;
    }
  }
  ASSERT_OK_AND_ASSIGN(const ModelText config_a, LoadConfigJson(folder.path() / "m.gguf"));
  ASSERT_OK_AND_ASSIGN(const ModelText config_b, LoadConfigJson(folder.path() / "m"));
  EXPECT_EQ(config_a.text, config_b.text);
  ASSERT_OK_AND_ASSIGN(const auto texts_a, LoadTextAssets(folder.path() / "m.gguf"));
  ASSERT_OK_AND_ASSIGN(const auto texts_b, LoadTextAssets(folder.path() / "m"));
  EXPECT_EQ(texts_a, texts_b);

  ASSERT_OK_AND_ASSIGN(const auto tokenizer,
                       Tokenizer::Create(texts_a.at("tokenizer.json"), texts_a.at("tokenizer_config.json")));
  EXPECT_EQ(tokenizer->vocab_size(), 1100);
  const std::string text = "The quick brown fox, <|user|> 東京!";
  ASSERT_OK_AND_ASSIGN(const auto ids, tokenizer->Encode(text, false));
  EXPECT_LT(ids.size(), text.size() * 3 / 4);
  EXPECT_EQ(*tokenizer->Decode(ids, false), text);
}

TEST(MakeModel, QuantizesTheMatrices) {
  const testing::TempFolder folder;
  for (const TensorType type : {TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kF32, TensorType::kBF16}) {
    const std::filesystem::path path = folder.path() / (std::string(InfoOf(type).name) + ".gguf");
    ASSERT_OK(MakeModel({.preset = SmallPreset(), .type = type}, path));
    ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint, Checkpoint::Open(path));
    const Tensor* matrix = checkpoint.Find("model.layers.1.mlp.down_proj.weight");
    ASSERT_NE(matrix, nullptr);
    EXPECT_EQ(matrix->type, type);
    EXPECT_NEAR(ValuesOf(*matrix)[5], 0, 0.04);
    const Tensor* norm = checkpoint.Find("model.norm.weight");
    ASSERT_NE(norm, nullptr);
    EXPECT_EQ(norm->type, TensorType::kF32);
    EXPECT_EQ(ValuesOf(*norm), std::vector<float>(64, 1));
  }
}

TEST(MakeModel, RefusesWhatCannotBe) {
  const testing::TempFolder folder;
  MakeModelOptions options = {.preset = SmallPreset(), .type = TensorType::kQ8_0, .format = ModelFormat::kSafetensors};
  EXPECT_TRUE(Fails(MakeModel(options, folder.path() / "m"), kInvalid, "safetensors holds f32, f16 or bf16"));
  folder.Write("m.gguf", "mine");
  options.format = ModelFormat::kGguf;
  EXPECT_TRUE(
      Fails(MakeModel(options, folder.path() / "m.gguf"), absl::StatusCode::kAlreadyExists, "m.gguf: exists already"));
  EXPECT_TRUE(Fails(MakeModel(options, folder.path() / "none" / "m.gguf"), absl::StatusCode::kNotFound,
                    "m.gguf: cannot be created"));
}

}  // namespace
}  // namespace baton
