// SPDX-License-Identifier: Apache-2.0
// Model::Load refuses bad models and names each cause.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <limits>
#include <string>

#include "engine/formats/checkpoint.h"
#include "tests/model_runner.h"
#include "tests/mutate.h"
#include "tests/safetensors_writer.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "tests/tiny_models.h"

namespace baton {
namespace {

using testing::Fails;
using testing::kInvalid;
using testing::RawTensor;

// A copy of a tiny model whose tensors and config a test can change.
class LoadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.CopyFrom(testing::TinyModel("llama_gqa"));
    ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint, Checkpoint::Open(folder_.path()));
    for (const Tensor& tensor : checkpoint.tensors()) {
      tensors_.push_back({tensor.name, tensor.type_name, tensor.shape,
                          std::string(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size())});
    }
    ASSERT_OK_AND_ASSIGN(config_, ReadTextFile(folder_.path() / "config.json", 1 << 20));
  }

  RawTensor& Named(const std::string& name) {
    return *std::find_if(tensors_.begin(), tensors_.end(), [&](const RawTensor& t) { return t.name == name; });
  }
  void SetConfig(const std::string& from, const std::string& to) {
    ASSERT_NE(config_.find(from), std::string::npos);
    config_.replace(config_.find(from), from.size(), to);
  }
  absl::StatusOr<std::unique_ptr<Model>> Load(const ModelOptions& options = {}) {
    folder_.Write("config.json", config_);
    folder_.Write("model.safetensors", testing::SafetensorsFile(tensors_));
    return Model::Load(folder_.path(), options);
  }

  const testing::TempFolder folder_;
  std::vector<RawTensor> tensors_;
  std::string config_;
};

TEST_F(LoadTest, LoadsTheUnchangedCopy) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model, Load());
  EXPECT_EQ(model->config().layers, 2);
  EXPECT_EQ(model->kv_layout().block(0).kv_heads, 2);
  EXPECT_EQ(model->kv_layout().block(0).head_dim, 8);
  EXPECT_EQ(model->kv_layout().dtype(), KvType::kF32);
  EXPECT_GE(model->weight_bytes(), 60'000U);
}

TEST_F(LoadTest, ReportsItsProgress) {
  uint64_t expected_total = 0;
  for (const RawTensor& tensor : tensors_) expected_total += tensor.data.size();
  std::vector<uint64_t> loaded;
  ASSERT_OK(Load({.progress = [&](uint64_t loaded_bytes, uint64_t total_bytes) {
    EXPECT_EQ(total_bytes, expected_total);
    loaded.push_back(loaded_bytes);
  }}));
  EXPECT_GT(loaded.size(), 2U * 4);
  EXPECT_TRUE(std::is_sorted(loaded.begin(), loaded.end()));
  EXPECT_EQ(loaded.back(), expected_total);
}

TEST_F(LoadTest, NamesAMissingFile) {
  const testing::TempFolder empty;
  EXPECT_TRUE(Fails(Model::Load(empty.path(), {}), absl::StatusCode::kNotFound, "config.json"));
  empty.Write("config.json", config_);
  EXPECT_TRUE(Fails(Model::Load(empty.path(), {}), absl::StatusCode::kNotFound, "model.safetensors"));
}

TEST_F(LoadTest, NamesAnUnknownArchitecture) {
  SetConfig("LlamaForCausalLM", "GPT2LMHeadModel");
  EXPECT_TRUE(Fails(Load(), absl::StatusCode::kUnimplemented, "unknown architecture \"GPT2LMHeadModel\""));
}

TEST_F(LoadTest, NamesAMissingTensorAndItsExpectedShape) {
  Named("model.layers.1.mlp.up_proj.weight").name = "model.layers.1.mlp.upward_proj.weight";
  EXPECT_TRUE(Fails(Load(), kInvalid,
                    "model.safetensors: tensor model.layers.1.mlp.up_proj.weight is missing, expected [48, 32]"));
}

TEST_F(LoadTest, NamesAMissingHeadUnlessItIsTied) {
  tensors_.erase(tensors_.begin() + (&Named("lm_head.weight") - tensors_.data()));
  EXPECT_TRUE(Fails(Load(), kInvalid, "tensor lm_head.weight is missing, expected [67, 32]"));
  SetConfig("\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true");
  EXPECT_OK(Load());
}

TEST_F(LoadTest, NamesAMisshapenTensor) {
  RawTensor& tensor = Named("model.layers.0.self_attn.k_proj.weight");
  tensor.shape = {32, 16};
  EXPECT_TRUE(
      Fails(Load(), kInvalid, "tensor model.layers.0.self_attn.k_proj.weight has shape [32, 16], expected [16, 32]"));
}

TEST_F(LoadTest, NamesATensorOfAnotherDType) {
  Named("model.norm.weight").dtype = "I32";
  EXPECT_TRUE(Fails(Load(), kInvalid,
                    "tensor model.norm.weight has dtype I32, which is not supported, expected F32, F16, BF16, Q8_0"));
}

TEST_F(LoadTest, NamesATensorThatTheModelHasNoPlaceFor) {
  tensors_.push_back({"model.layers.0.self_attn.q_proj.bias", "F32", {1}, "abcd"});
  EXPECT_TRUE(Fails(Load(), kInvalid, "tensor model.layers.0.self_attn.q_proj.bias is not part of the model"));
}

TEST_F(LoadTest, IgnoresTheFrequenciesThatOldModelsStore) {
  tensors_.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {1}, "abcd"});
  EXPECT_OK(Load());
}

TEST_F(LoadTest, NamesAnOptionThatIsOutOfRange) {
  EXPECT_TRUE(Fails(Load({.kernels = "mmx"}), kInvalid, "mmx"));
  EXPECT_TRUE(Fails(Load({.page_tokens = 0}), kInvalid, "page_tokens is 0"));
  EXPECT_FALSE(Load({.threads = 0}).ok());
}

TEST_F(LoadTest, SixteenBitWeightsGetSixteenBitKvUnlessToldOtherwise) {
  const auto bf16 = testing::LoadModel(testing::TinyModel("llama_bf16"));
  const auto f16 = testing::LoadModel(testing::TinyModel("llama_f16"));
  const auto told = testing::LoadModel(testing::TinyModel("llama_f16"), {.kv_dtype = KvType::kF32});
  EXPECT_EQ(bf16->kv_layout().dtype(), KvType::kBF16);
  EXPECT_EQ(f16->kv_layout().dtype(), KvType::kBF16);
  EXPECT_EQ(told->kv_layout().dtype(), KvType::kF32);
}

TEST_F(LoadTest, NumericsIdIsTheSameForTheSameComputationAlone) {
  const auto id = [&](const ModelOptions& options = {.kernels = "scalar"}) {
    const auto model = Load(options);
    EXPECT_OK(model);
    return model.ok() ? (*model)->numerics_id() : "";
  };
  const std::string original = id();
  EXPECT_EQ(original, id({.threads = 2, .kernels = "scalar"}));
  EXPECT_NE(original, id({.kernels = "scalar", .kv_dtype = KvType::kBF16}));
  EXPECT_NE(original, id({.kernels = "scalar", .page_tokens = 32}));
  SetConfig("\"rope_theta\": 10000.0", "\"rope_theta\": 20000.0");
  EXPECT_NE(original, id());
  SetConfig("\"rope_theta\": 20000.0", "\"rope_theta\": 10000.0");
  EXPECT_EQ(original, id());
  Named("model.norm.weight").data[2] ^= 1;
  EXPECT_NE(original, id());
}

// intermediate_size is 48: rows of down_proj do not fill groups of 32.
TEST_F(LoadTest, RefusesToQuantizeRowsThatAreNoWholeGroups) {
  EXPECT_TRUE(Fails(Load({.quantize = TensorType::kQ8_0}).status(), kInvalid,
                    "tensor model.layers.0.mlp.down_proj.weight has rows of 48 values, expected a multiple of 32"));
}

TEST_F(LoadTest, RefusesToQuantizeWhatIsNotFinite) {
  RawTensor& embedding = Named("model.embed_tokens.weight");
  const float infinity = std::numeric_limits<float>::infinity();
  std::memcpy(&embedding.data[sizeof(float) * (32 * 2 + 5)], &infinity, sizeof(infinity));  // row 2
  EXPECT_TRUE(Fails(Load({.quantize = TensorType::kQ4_0}).status(), kInvalid,
                    "tensor model.embed_tokens.weight has a value in row 2 that Q4_0 cannot hold"));
}

TEST_F(LoadTest, DamagedFoldersAreRefusedOrRun) {
  const std::string weights = testing::SafetensorsFile(tensors_);
  constexpr size_t kDamaged = 3000;  // the header and a little: content has no structure to break
  int loaded = 0;
  for (int seed = 0; seed < 1000; ++seed) {
    const bool damage_config = seed % 2 == 0;
    folder_.Write("config.json", damage_config ? testing::Mutate(config_, seed) : config_);
    folder_.Write(
        "model.safetensors",
        damage_config ? weights : testing::Mutate(weights.substr(0, kDamaged), seed) + weights.substr(kDamaged));
    const auto model = Model::Load(folder_.path(), {});
    if (!model.ok()) continue;
    ++loaded;
    const auto pool = testing::MakePool(**model, 2);
    testing::PagedSequence sequence(*pool, {0, 0, 0}, 3);
    const SequenceInput input = sequence.Next(3, Want::kLastLogits);
    ForwardOutput output;
    (*model)->Forward({&input, 1}, *pool, nullptr, output).IgnoreError();  // a context of one position: refused
  }
  EXPECT_GT(loaded, 0);
}

}  // namespace
}  // namespace baton
