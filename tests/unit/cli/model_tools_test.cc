// SPDX-License-Identifier: Apache-2.0
// Making models and looking at them, without the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "cli/report/model_report.h"
#include "cli/tools/inspect_model.h"
#include "cli/tools/make_model.h"
#include "cli/tools/quantize_model.h"
#include "cli/tools/random_weights.h"
#include "cli/tools/synthetic_vocabulary.h"
#include "common/sha256.h"
#include "common/strings.h"
#include "engine/formats/block_codec.h"
#include "engine/formats/checkpoint.h"
#include "engine/formats/model_folder.h"
#include "small_preset.h"
#include "tests/files.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "tests/tiny_models.h"
#include "text/tokenizer/tokenizer.h"

namespace baton {
namespace {

using testing::Fails;
using testing::kInvalid;
using testing::SmallPreset;

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
      EXPECT_TRUE(std::equal(&y[size_t{64} * row], &y[size_t{64} * row] + 64, &x[size_t{64} * in_file]))
          << a.tensors()[t].name << " " << row;
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

TEST(MakeModel, WritesTheSameBytesOnAnyNumberOfThreads) {
  // The bytes are those of earlier versions, too: benchmarks name a model by its preset, type and seed.
  const std::pair<TensorType, std::string> cases[] = {
      {TensorType::kQ8_0, "f2e969acd2f5c740163841a29ae416d5071e9c4c728aa0e0e487577ed0885715"},
      {TensorType::kBF16, "a7ae92cdcb43eee2a40dfe95983a051e1868a665ecbc7b0123aeb662390f4978"}};
  const testing::TempFolder folder;
  for (const auto& [type, digest] : cases) {
    for (const int threads : {1, 4}) {
      const std::filesystem::path path = folder.path() / Concat(InfoOf(type).name, "-", threads, ".gguf");
      ASSERT_OK(MakeModel({.preset = SmallPreset(), .type = type, .threads = threads}, path));
      Sha256 hash;
      hash.Add(testing::ReadFile(path));
      EXPECT_EQ(ToHex(hash.Finish()), digest) << path;
    }
  }
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
  EXPECT_TRUE(
      Fails(MakeModel(options, folder.path() / "m"), kInvalid, "type for safetensors: expected f32, f16 or bf16"));
  folder.Write("m.gguf", "mine");
  options.format = ModelFormat::kGguf;
  EXPECT_TRUE(
      Fails(MakeModel(options, folder.path() / "m.gguf"), absl::StatusCode::kAlreadyExists, "m.gguf: exists already"));
  EXPECT_TRUE(Fails(MakeModel(options, folder.path() / "none" / "m.gguf"), absl::StatusCode::kNotFound,
                    "m.gguf: cannot be created"));
}

TEST(QuantizeModel, MakesTheSameOfAFolderAndOfAFile) {
  const testing::TempFolder folder;
  MakeModelOptions options = {.preset = SmallPreset(), .type = TensorType::kBF16};
  ASSERT_OK(MakeModel(options, folder.path() / "m.gguf"));
  options.format = ModelFormat::kSafetensors;
  ASSERT_OK(MakeModel(options, folder.path() / "m"));
  for (const TensorType type : {TensorType::kQ8_0, TensorType::kQ4_0}) {
    const std::filesystem::path a = folder.path() / (std::string(InfoOf(type).name) + "-a.gguf");
    const std::filesystem::path b = folder.path() / (std::string(InfoOf(type).name) + "-b.gguf");
    ASSERT_OK_AND_ASSIGN(const QuantizedModel from_file,
                         QuantizeModel(folder.path() / "m.gguf", a, {.type = type, .threads = 2}));
    ASSERT_OK(QuantizeModel(folder.path() / "m", b, {.type = type}));
    EXPECT_EQ(from_file.matrices, 2 + 2 * 7);
    EXPECT_EQ(from_file.bytes, std::filesystem::file_size(a));
    ASSERT_OK_AND_ASSIGN(const Checkpoint x, Checkpoint::Open(a));
    ASSERT_OK_AND_ASSIGN(const Checkpoint y, Checkpoint::Open(b));
    ASSERT_EQ(x.tensors().size(), y.tensors().size());
    for (size_t t = 0; t < x.tensors().size(); ++t) {
      EXPECT_EQ(x.tensors()[t].name, y.tensors()[t].name);
      EXPECT_EQ(x.tensors()[t].type, y.tensors()[t].type);
      EXPECT_EQ(x.tensors()[t].interleaved_heads, y.tensors()[t].interleaved_heads);
      EXPECT_EQ(ValuesOf(x.tensors()[t]), ValuesOf(y.tensors()[t])) << x.tensors()[t].name;
    }
    ASSERT_OK_AND_ASSIGN(const ModelText config_a, LoadConfigJson(a));
    ASSERT_OK_AND_ASSIGN(const ModelText config_b, LoadConfigJson(b));
    EXPECT_EQ(config_a.text, config_b.text);
    ASSERT_OK_AND_ASSIGN(const auto texts_a, LoadTextAssets(a));
    ASSERT_OK_AND_ASSIGN(const auto texts_b, LoadTextAssets(b));
    EXPECT_EQ(texts_a, texts_b);
  }
}

TEST(QuantizeModel, TheDemoModelKeepsItsTokenizer) {
  const testing::TempFolder folder;
  const std::filesystem::path quantized = folder.path() / "q.gguf";
  const testing::TempFolder demo;
  demo.CopyFrom(testing::DemoModel("demo-chat"));
  auto tokenizer_config = nlohmann::json::parse(testing::ReadFile(demo.path() / "tokenizer_config.json"));
  tokenizer_config["pad_token"] = "<|end|>";
  demo.Write("tokenizer_config.json", tokenizer_config.dump());
  ASSERT_OK(QuantizeModel(demo.path(), quantized, {.type = TensorType::kQ8_0, .threads = 2}));
  ASSERT_OK_AND_ASSIGN(const auto texts, LoadTextAssets(quantized));
  EXPECT_EQ(nlohmann::json::parse(texts.at("tokenizer_config.json"))["pad_token"], "<|end|>");
  ASSERT_OK_AND_ASSIGN(const auto original, LoadTextAssets(testing::DemoModel("demo-chat")));
  const auto create = [](const auto& t) {
    return *Tokenizer::Create(t.at("tokenizer.json"), t.at("tokenizer_config.json"));
  };
  for (const std::string text : {"Hello, it's 12345!", "<|user|>naïve 東京<|end|>", ""}) {
    EXPECT_EQ(*create(texts)->Encode(text, true), *create(original)->Encode(text, true));
  }
  EXPECT_EQ(nlohmann::json::parse(texts.at("tokenizer.json"))["model"]["ignore_merges"], false);
  EXPECT_NE(texts.at("tokenizer_config.json").find("add_generation_prompt"), std::string::npos);
  EXPECT_NE(texts.at("generation_config.json").find("[4091,4095]"), std::string::npos);

  // Each value within half a step of what it was.
  ASSERT_OK_AND_ASSIGN(const Checkpoint x, Checkpoint::Open(quantized));
  ASSERT_OK_AND_ASSIGN(const Checkpoint y, Checkpoint::Open(testing::DemoModel("demo-chat")));
  const std::string name = "model.layers.3.mlp.down_proj.weight";
  const std::vector<float> values = ValuesOf(*x.Find(name));
  const std::vector<float> expected = ValuesOf(*y.Find(name));
  for (size_t block = 0; block < values.size(); block += 32) {
    float greatest = 0;
    for (size_t i = block; i < block + 32; ++i) greatest = std::max(greatest, std::fabs(expected[i]));
    for (size_t i = block; i < block + 32; ++i) EXPECT_NEAR(values[i], expected[i], greatest / 127 * 0.51f);
  }
}

TEST(QuantizeModel, TheHeadMayHaveATypeOfItsOwn) {
  const testing::TempFolder folder;
  for (const bool tied : {true, false}) {
    const std::filesystem::path in = folder.path() / (tied ? "tied.gguf" : "untied.gguf");
    const std::filesystem::path out = folder.path() / (tied ? "tied-q.gguf" : "untied-q.gguf");
    ModelPreset preset = SmallPreset();
    preset.tied_embeddings = tied;
    ASSERT_OK(MakeModel({.preset = preset}, in));
    ASSERT_OK(QuantizeModel(in, out, {.type = TensorType::kQ4_0, .head_type = TensorType::kQ8_0}));
    ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint, Checkpoint::Open(out));
    const TensorType embedding = *checkpoint.Find("model.embed_tokens.weight")->type;
    EXPECT_EQ(embedding, tied ? TensorType::kQ8_0 : TensorType::kQ4_0);
    if (!tied) {
      EXPECT_EQ(checkpoint.Find("lm_head.weight")->type, TensorType::kQ8_0);
    }
    EXPECT_EQ(checkpoint.Find("model.layers.0.mlp.down_proj.weight")->type, TensorType::kQ4_0);
  }
}

TEST(QuantizeModel, RefusesByTheTensorsName) {
  const testing::TempFolder folder;
  ModelPreset preset = SmallPreset();
  preset.ffn_size = 100;
  ASSERT_OK(MakeModel({.preset = preset, .type = TensorType::kF32}, folder.path() / "m.gguf"));
  const std::filesystem::path out = folder.path() / "q.gguf";
  EXPECT_TRUE(
      Fails(QuantizeModel(folder.path() / "m.gguf", out, {}), kInvalid,
            "m.gguf: tensor blk.0.ffn_down.weight: expected rows of a multiple of 32 values for Q8_0, got 100"));
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_TRUE(Fails(QuantizeModel(folder.path() / "none", out, {}), absl::StatusCode::kNotFound, "config.json"));
  EXPECT_TRUE(Fails(QuantizeModel(folder.path() / "none.gguf", out, {}), absl::StatusCode::kNotFound, "none.gguf"));
  EXPECT_TRUE(Fails(QuantizeModel(folder.path() / "none", folder.path() / "m.gguf", {}),
                    absl::StatusCode::kAlreadyExists, "m.gguf: exists already"));
}

TEST(QuantizeModel, RefusesATokenizerThatItCannotWrite) {
  using Json = nlohmann::json;
  const testing::TempFolder folder;
  const std::filesystem::path model = folder.path() / "m";
  std::filesystem::copy(testing::DemoModel("demo-chat"), model, std::filesystem::copy_options::recursive);
  const Json demo = Json::parse(testing::ReadFile(testing::DemoModel("demo-chat") / "tokenizer.json"));
  const auto refused = [&](const std::string& path, const Json& value, const std::string& why) {
    Json changed = demo;
    changed[Json::json_pointer(path)] = value;
    folder.Write("m/tokenizer.json", changed.dump());
    EXPECT_TRUE(Fails(QuantizeModel(model, folder.path() / "q.gguf", {}), absl::StatusCode::kUnimplemented, why))
        << path;
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "q.gguf"));
  };
  const Json digits = {{"type", "Sequence"}, {"pretokenizers", {{{"type", "Digits"}}, {{"type", "ByteLevel"}}}}};
  refused("/normalizer", {{"type", "Lowercase"}}, "normalizer 'Lowercase' has no counterpart in GGUF");
  refused("/pre_tokenizer", digits, "pre-tokenizer 'Digits' has no counterpart in GGUF");
}

TEST(InspectModel, CountsTensorsAndTokens) {
  const testing::TempFolder folder;
  ASSERT_OK_AND_ASSIGN(const MadeModel made,
                       MakeModel({.preset = SmallPreset(), .type = TensorType::kQ8_0}, folder.path() / "m.gguf"));
  ASSERT_OK_AND_ASSIGN(const ModelReport report, InspectModel(folder.path() / "m.gguf"));
  EXPECT_EQ(report.format, "gguf");
  EXPECT_EQ(report.total.parameters, made.parameters);
  EXPECT_EQ(report.total.tensors, 1 + 2 * 9 + 2);
  ASSERT_EQ(report.types.size(), 2U);
  EXPECT_EQ(report.types[0].type, "Q8_0");
  EXPECT_EQ(report.types[0].tensors, 2 + 2 * 7);
  EXPECT_EQ(report.types[1].bytes, 5 * 64 * 4);
  ASSERT_TRUE(report.config.has_value());
  EXPECT_EQ(report.config->rope.scaling, RopeConfig::Scaling::kLlama3);
  EXPECT_EQ(KvBytesPerToken(*report.config, KvType::kBF16), 2 * 2 * 2 * 16 * 2);
  EXPECT_EQ(TokensThatFit(report, KvType::kBF16, report.total.memory_bytes), 0U);
  EXPECT_EQ(TokensThatFit(report, KvType::kBF16, report.total.memory_bytes + 2560), 10U);
  EXPECT_OK(report.tokenizer_status);
  EXPECT_EQ(report.tokenizer_tokens, report.config->vocab_size);
}

TEST(InspectModel, SaysWhatOfTheTextsIsNotSupported) {
  const testing::TempFolder folder;
  folder.CopyFrom(testing::DemoModel("demo-chat"));
  ASSERT_OK_AND_ASSIGN(ModelReport report, InspectModel(folder.path()));
  EXPECT_OK(report.chat_template_status);
  ASSERT_EQ(report.end_tokens.size(), 2U);
  EXPECT_TRUE(absl::StrContains(ToText("m", report), "\nanswers end at "));
  EXPECT_TRUE(absl::StrContains(ToText("m", report), ", <|end|> (4095)\n"));
  EXPECT_TRUE(absl::StrContains(ToJson("m", report), R"({"id":4095,"text":"<|end|>"}])"));
  report.end_tokens.clear();
  EXPECT_TRUE(absl::StrContains(ToText("m", report), "\nno token ends an answer\n"));
  folder.Write("chat_template.jinja", "{{ messages|xmlattr }}");
  ASSERT_OK_AND_ASSIGN(report, InspectModel(folder.path()));
  EXPECT_OK(report.tokenizer_status);
  EXPECT_TRUE(Fails(report.chat_template_status, absl::StatusCode::kUnimplemented, "'xmlattr'"));
  EXPECT_TRUE(absl::StrContains(ToText("m", report), "no chat: chat template, line 1"));
  folder.Write("tokenizer.json", "{}");
  ASSERT_OK_AND_ASSIGN(report, InspectModel(folder.path()));
  EXPECT_TRUE(Fails(report.tokenizer_status, absl::StatusCode::kUnimplemented, "a tokenizer without a decoder"));
  EXPECT_TRUE(absl::StrContains(ToText("m", report), "cannot be served: tokenizer.json"));
}

TEST(InspectModel, SaysWhyAModelCannotBeServed) {
  const testing::TempFolder folder;
  folder.CopyFrom(testing::TinyModel("llama_gqa"));
  folder.Write("config.json", R"({"architectures": ["OtherForCausalLM"]})");
  ASSERT_OK_AND_ASSIGN(const ModelReport report, InspectModel(folder.path()));
  EXPECT_FALSE(report.config.has_value());
  EXPECT_TRUE(Fails(report.config_status, absl::StatusCode::kUnimplemented, "OtherForCausalLM"));
  EXPECT_GT(report.total.bytes, 0U);
  EXPECT_TRUE(Fails(InspectModel(folder.path() / "none"), absl::StatusCode::kNotFound, "model.safetensors"));
}

}  // namespace
}  // namespace baton
