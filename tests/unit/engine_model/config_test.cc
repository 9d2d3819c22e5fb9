// SPDX-License-Identifier: Apache-2.0
#include "engine/model/config.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/formats/file.h"
#include "tests/mutate.h"
#include "tests/status_matchers.h"
#include "tests/tiny_models.h"

namespace baton {
namespace {

using testing::Fails;
using testing::kInvalid;

constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;

constexpr char kBase[] = R"("architectures": ["LlamaForCausalLM"], "hidden_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 64, "max_position_embeddings": 512)";

// The base config and `more` fields after it.
absl::StatusOr<ModelConfig> ParseWith(const std::string& more) {
  return ParseModelConfig(std::string("{") + kBase + (more.empty() ? "" : ", " + more) + "}", "config.json");
}

// The base config with the first `from` replaced by `to`.
absl::StatusOr<ModelConfig> ParseReplacing(const std::string& from, const std::string& to) {
  std::string text = std::string("{") + kBase + "}";
  text.replace(text.find(from), from.size(), to);
  return ParseModelConfig(text, "config.json");
}

TEST(ParseModelConfig, FillsInWhatHuggingFaceLeavesOut) {
  ASSERT_OK_AND_ASSIGN(const ModelConfig config, ParseWith(""));
  EXPECT_EQ(config.family, FindGgufFamily("llama"));
  EXPECT_EQ(config.kv_heads, 4);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_FALSE(config.tied_embeddings);
  EXPECT_EQ(config.family->parts.head_norm, NormKind::kNone);
  EXPECT_EQ(config.rope.theta, 10000.0);
  EXPECT_EQ(config.rope.scaling, RopeConfig::Scaling::kNone);
  EXPECT_EQ(config.rms_norm_eps, 1e-6f);
}

TEST(ParseModelConfig, ReadsQwen3) {
  ASSERT_OK_AND_ASSIGN(const std::string text, ReadTextFile(testing::TinyModel("qwen3") / "config.json", 1 << 20));
  ASSERT_OK_AND_ASSIGN(const ModelConfig config, ParseModelConfig(text, "config.json"));
  EXPECT_EQ(config.family, FindGgufFamily("qwen3"));
  EXPECT_EQ(config.family->parts.head_norm, NormKind::kRms);
  EXPECT_TRUE(config.tied_embeddings);
  EXPECT_EQ(config.head_dim, 16);
}

TEST(ParseModelConfig, ReadsScalingUnderTheOlderAndTheNewerKey) {
  ASSERT_OK_AND_ASSIGN(const ModelConfig linear, ParseWith(R"("rope_scaling": {"type": "linear", "factor": 4})"));
  EXPECT_EQ(linear.rope.scaling, RopeConfig::Scaling::kLinear);
  EXPECT_EQ(linear.rope.factor, 4.0);
  const char* llama3 = R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                           "original_max_position_embeddings": 8192})";
  ASSERT_OK_AND_ASSIGN(const ModelConfig scaled,
                       ParseWith(std::string(R"("rope_theta": 5e5, "rope_scaling": )") + llama3));
  EXPECT_EQ(scaled.rope.scaling, RopeConfig::Scaling::kLlama3);
  EXPECT_EQ(scaled.rope.theta, 5e5);
  EXPECT_EQ(scaled.rope.high_freq_factor, 4.0);
  EXPECT_EQ(scaled.rope.original_max_position, 8192.0);
  ASSERT_OK_AND_ASSIGN(const ModelConfig none, ParseWith(R"("rope_scaling": {"rope_type": "default"})"));
  EXPECT_EQ(none.rope.scaling, RopeConfig::Scaling::kNone);
  ASSERT_OK_AND_ASSIGN(const ModelConfig newest,
                       ParseWith(R"("rope_parameters": {"rope_type": "linear", "factor": 2, "rope_theta": 1e6})"));
  EXPECT_EQ(newest.rope.scaling, RopeConfig::Scaling::kLinear);
  EXPECT_EQ(newest.rope.theta, 1e6);
}

TEST(ParseModelConfig, RefusesByNameWhatItCannotCompute) {
  EXPECT_TRUE(Fails(ParseReplacing("LlamaForCausalLM", "MambaForCausalLM"), kUnimplemented,
                    "config.json: architectures: unknown architecture \"MambaForCausalLM\", expected one of "
                    "LlamaForCausalLM, Qwen3ForCausalLM"));
  const std::pair<const char*, const char*> cases[] = {
      {R"("attention_bias": true)", "config.json: attention_bias"},
      {R"("mlp_bias": true)", "config.json: mlp_bias"},
      {R"("hidden_act": "gelu")", "config.json: hidden_act: unknown activation \"gelu\", expected silu"},
      {R"("sliding_window": 4096)", "config.json: sliding_window"},
      {R"("use_sliding_window": true, "sliding_window": 4096)", "config.json: sliding_window"},
      {R"("layer_types": ["full_attention", "sliding_attention"])", "config.json: layer_types"},
      {R"("quantization_config": {"quant_method": "fp8"})", "config.json: quantization_config"},
      {R"("partial_rotary_factor": 0.5)", "config.json: partial_rotary_factor"},
      {R"("rope_scaling": {"rope_type": "yarn", "factor": 4})",
       "config.json: rope_scaling: type: unknown scaling \"yarn\""},
  };
  for (const auto& [more, error] : cases) EXPECT_TRUE(Fails(ParseWith(more), kUnimplemented, error)) << more;
}

TEST(ParseModelConfig, AcceptsAWindowThatIsNotUsed) {
  EXPECT_OK(ParseWith(R"("use_sliding_window": false, "sliding_window": 4096, "layer_types": ["full_attention"])"));
}

TEST(ParseModelConfig, NamesTheFieldThatIsWrong) {
  EXPECT_TRUE(Fails(ParseModelConfig("{", "config.json"), kInvalid, "config.json: not valid JSON"));
  EXPECT_TRUE(Fails(ParseModelConfig("[]", "config.json"), kInvalid, "config.json: expected a JSON object"));
  EXPECT_TRUE(Fails(ParseModelConfig("{}", "config.json"), kInvalid, "config.json: architectures: expected a value"));
  EXPECT_TRUE(
      Fails(ParseReplacing("\"hidden_size\": 32, ", ""), kInvalid, "config.json: hidden_size: expected a value"));
  EXPECT_TRUE(Fails(ParseReplacing("32", "-32"), kInvalid, "config.json: hidden_size: expected an integer from 1"));
  EXPECT_TRUE(Fails(ParseReplacing("32", "1e9"), kInvalid, "config.json: hidden_size"));
  EXPECT_TRUE(
      Fails(ParseReplacing("32", "33"), kInvalid, "config.json: hidden_size: expected a multiple of the 4 heads"));
  EXPECT_TRUE(Fails(ParseReplacing("32", "36"), kInvalid, "config.json: head_dim: expected an even number"));
  const std::pair<const char*, const char*> cases[] = {
      {R"("num_key_value_heads": 3)", "config.json: num_key_value_heads: expected a divisor of the 4 heads, got 3"},
      {R"("num_key_value_heads": 0)", "config.json: num_key_value_heads"},
      {R"("head_dim": 7)", "config.json: head_dim: expected an even number"},
      {R"("rms_norm_eps": -1)", "config.json: rms_norm_eps"},
      {R"("rope_theta": 0)", "config.json: rope_theta"},
      {R"("rope_scaling": 3)", "config.json: rope_scaling: expected a JSON object"},
      {R"("rope_scaling": {"type": "linear"})", "config.json: rope_scaling: factor: expected a value"},
      {R"("rope_scaling": {"type": "linear", "factor": 0})", "config.json: rope_scaling: factor"},
      {R"("rope_scaling": {"type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4,
           "original_max_position_embeddings": 8192})",
       "config.json: rope_scaling: high_freq_factor: expected more than low_freq_factor"},
      {R"("tie_word_embeddings": 1)", "config.json: tie_word_embeddings: expected true or false"},
  };
  for (const auto& [more, error] : cases) EXPECT_TRUE(Fails(ParseWith(more), kInvalid, error)) << more;
}

TEST(ParseModelConfig, BoundsProductsOfSizes) {
  EXPECT_TRUE(Fails(ParseReplacing("\"num_attention_heads\": 4", R"("num_attention_heads": 1024, "head_dim": 1024)"),
                    kInvalid, "heads x head_dim"));
  EXPECT_TRUE(Fails(ParseReplacing("512", "1000000, \"head_dim\": 256"), kInvalid, "positions x head_dim"));
}

TEST(ParseModelConfig, SurvivesThousandsOfDamagedFiles) {
  for (const char* model : {"llama_rope_llama3", "qwen3"}) {
    ASSERT_OK_AND_ASSIGN(const std::string text, ReadTextFile(testing::TinyModel(model) / "config.json", 1 << 20));
    for (int seed = 0; seed < 5000; ++seed) {
      const absl::StatusOr<ModelConfig> config = ParseModelConfig(testing::Mutate(text, seed), "config.json");
      if (config.ok()) {
        EXPECT_GE(config->head_dim, 2);
        EXPECT_EQ(config->heads % config->kv_heads, 0);
      } else {
        EXPECT_NE(std::string(config.status().message()).find("config.json"), std::string::npos);
      }
    }
  }
}

TEST(ComputationText, DiffersWhenTheComputationDoes) {
  ASSERT_OK_AND_ASSIGN(const ModelConfig base, ParseWith(""));
  for (const char* more : {R"("rms_norm_eps": 1e-5)", R"("rope_theta": 10001)", R"("tie_word_embeddings": true)",
                           R"("rope_scaling": {"type": "linear", "factor": 4})", R"("num_key_value_heads": 2)"}) {
    ASSERT_OK_AND_ASSIGN(const ModelConfig other, ParseWith(more));
    EXPECT_NE(ComputationText(base), ComputationText(other)) << more;
  }
}

}  // namespace
}  // namespace baton
