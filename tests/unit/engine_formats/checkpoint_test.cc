// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "engine/formats/model_folder.h"
#include "tests/safetensors_writer.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "tests/tiny_models.h"

namespace baton {
namespace {

using ::testing::Contains;
using testing::Fails;
using ::testing::HasSubstr;
using ::testing::Key;
using testing::kInvalid;
using testing::RawTensor;
using testing::SafetensorsFile;
using testing::TempFolder;

std::string Index(const std::string& weight_map) { return "{\"weight_map\": {" + weight_map + "}}"; }

TEST(Checkpoint, FindsTensorsOfASingleFile) {
  ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint, Checkpoint::Open(testing::TinyModel("llama_gqa")));
  const Tensor* tensor = checkpoint.Find("model.layers.1.self_attn.k_proj.weight");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->data.size(), 16U * 32 * 4);
  EXPECT_EQ(checkpoint.Find("model.layers.2.self_attn.k_proj.weight"), nullptr);
}

TEST(Checkpoint, JoinsShards) {
  ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint, Checkpoint::Open(testing::TinyModel("llama_sharded")));
  EXPECT_NE(checkpoint.Find("model.embed_tokens.weight"), nullptr);
  EXPECT_NE(checkpoint.Find("model.norm.weight"), nullptr);
  EXPECT_EQ(checkpoint.tensors().size(), 20U);
}

TEST(Checkpoint, NamesTheMissingFile) {
  const TempFolder folder;
  EXPECT_TRUE(Fails(Checkpoint::Open(folder.path()), absl::StatusCode::kNotFound, "model.safetensors"));
  folder.Write("model.safetensors.index.json", Index(R"("a": "1.safetensors")"));
  EXPECT_TRUE(Fails(Checkpoint::Open(folder.path()), absl::StatusCode::kNotFound, "1.safetensors"));
}

TEST(Checkpoint, RefusesAnIndexThatDisagreesWithItsFiles) {
  const TempFolder folder;
  folder.Write("1.safetensors", SafetensorsFile({{"a", "F32", {1}, "abcd"}}));
  folder.Write("2.safetensors", SafetensorsFile({{"a", "F32", {1}, "abcd"}}));
  folder.Write("model.safetensors.index.json", Index(R"("a": "1.safetensors", "b": "1.safetensors")"));
  EXPECT_TRUE(Fails(Checkpoint::Open(folder.path()), kInvalid, "tensor b is not in 1.safetensors"));
  folder.Write("model.safetensors.index.json", Index(R"("a": "1.safetensors", "b": "2.safetensors")"));
  EXPECT_TRUE(Fails(Checkpoint::Open(folder.path()), kInvalid, "tensor a: expected one tensor, got several"));
}

TEST(Checkpoint, NamesTheDamagedFile) {
  const TempFolder folder;
  folder.Write("model.safetensors", "short");
  EXPECT_TRUE(Fails(Checkpoint::Open(folder.path()), kInvalid, "model.safetensors: expected a safetensors file"));
}

TEST(MappedFile, RefusesFoldersAndPipesWithoutHanging) {
  const TempFolder folder;
  EXPECT_TRUE(Fails(MappedFile::Open(folder.path()), kInvalid, "expected a regular file"));
  const std::filesystem::path pipe = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(Fails(MappedFile::Open(pipe), kInvalid, "expected a regular file"));
}

TEST(ReadTextFile, ReadsUpToItsLimit) {
  const TempFolder folder;
  folder.Write("text", "12345");
  folder.Write("empty", "");
  ASSERT_OK_AND_ASSIGN(const std::string text, ReadTextFile(folder.path() / "text", 5));
  EXPECT_EQ(text, "12345");
  ASSERT_OK_AND_ASSIGN(const std::string empty, ReadTextFile(folder.path() / "empty", 5));
  EXPECT_EQ(empty, "");
  EXPECT_TRUE(Fails(ReadTextFile(folder.path() / "text", 4), absl::StatusCode::kResourceExhausted,
                    "text: 5 bytes, expected at most 4"));
}

TEST(LoadTextAssets, RequiresTokenizerJsonAndReadsOptionalFiles) {
  ASSERT_OK_AND_ASSIGN(const auto assets, LoadTextAssets(testing::DemoModel("demo-chat")));
  EXPECT_EQ(assets.size(), 3U);
  EXPECT_THAT(assets, Contains(Key("generation_config.json")));
  EXPECT_EQ(assets.at("tokenizer.json").front(), '{');

  const TempFolder folder;
  EXPECT_TRUE(Fails(LoadTextAssets(folder.path()), absl::StatusCode::kNotFound, "tokenizer.json"));
  folder.Write("tokenizer.json", "{}");
  folder.Write("chat_template.jinja", "{{ x }}");
  ASSERT_OK_AND_ASSIGN(const auto two, LoadTextAssets(folder.path()));
  EXPECT_EQ(two.size(), 2U);
  std::filesystem::create_directory(folder.path() / "additional_chat_templates");
  folder.Write("additional_chat_templates/tool_use.jinja", "{{ y }}");
  ASSERT_OK_AND_ASSIGN(const auto three, LoadTextAssets(folder.path()));
  EXPECT_EQ(three.at("additional_chat_templates/tool_use.jinja"), "{{ y }}");
}

TEST(LoadTextAssets, TakesEndTokensFromConfigJsonWhenGenerationConfigHasNone) {
  const TempFolder folder;
  folder.Write("tokenizer.json", "{}");
  const auto generation = [&](const std::string& config) {
    folder.Write("config.json", config);
    const auto assets = LoadTextAssets(folder.path());
    if (!assets.ok()) return std::string(assets.status().message());
    const auto it = assets->find("generation_config.json");
    return it == assets->end() ? "none" : it->second;
  };
  EXPECT_EQ(generation(R"({"eos_token_id": 2})"), R"({"eos_token_id":2})");
  EXPECT_EQ(generation(R"({"eos_token_id": [2, 3]})"), R"({"eos_token_id":[2,3]})");
  EXPECT_EQ(generation(R"({"eos_token_id": null})"), "none");
  EXPECT_EQ(generation("{}"), "none");
  EXPECT_THAT(generation(R"({"eos_token_id": "x"})"),
              HasSubstr("config.json: eos_token_id: expected a token id or a list of token ids"));
  folder.Write("generation_config.json", R"({"top_k": 5, "eos_token_id": null})");
  EXPECT_EQ(generation(R"({"eos_token_id": 2})"), R"({"eos_token_id":2,"top_k":5})");
  folder.Write("generation_config.json", R"({ "eos_token_id": 7 })");
  EXPECT_EQ(generation(R"({"eos_token_id": 2})"), R"({ "eos_token_id": 7 })")
      << "config.json must not override generation_config.json";
}

class Fingerprint : public ::testing::Test {
 protected:
  static std::string Of(const std::vector<RawTensor>& raw, const std::string& config = "c") {
    const std::string file = SafetensorsFile(raw);
    const auto tensors = ParseSafetensors(std::as_bytes(std::span(file)), "m");
    EXPECT_OK(tensors);
    return ModelFingerprint(config, *tensors);
  }
};

TEST_F(Fingerprint, ChangesWithNameDtypeShapeContentAndConfig) {
  const std::string original = Of({{"a", "F32", {2}, "abcdefgh"}});
  EXPECT_EQ(original.size(), 16U);
  EXPECT_EQ(original, Of({{"a", "F32", {2}, "abcdefgh"}}));
  EXPECT_NE(original, Of({{"b", "F32", {2}, "abcdefgh"}}));
  EXPECT_NE(original, Of({{"a", "F16", {4}, "abcdefgh"}}));
  EXPECT_NE(original, Of({{"a", "F32", {2, 1}, "abcdefgh"}}));
  EXPECT_NE(original, Of({{"a", "F32", {2}, "abcdefgH"}}));
  EXPECT_NE(original, Of({{"a", "F32", {2}, "abcdefgh"}}, "d"));
}

TEST_F(Fingerprint, OfALargeModelCoversBothEndsOfEachTensor) {
  constexpr int64_t kBytes = int64_t{80} << 20;  // above 64 MiB, content is sampled
  std::vector<RawTensor> raw = {{"a", "U8", {kBytes}, std::string(kBytes, 'x')}, {"b", "U8", {5}, "12345"}};
  const std::string original = Of(raw);
  raw[0].data.back() = 'y';
  EXPECT_NE(original, Of(raw));
  raw[0].data.back() = 'x';
  raw[0].data.front() = 'y';
  EXPECT_NE(original, Of(raw));
  raw[0].data.front() = 'x';
  raw[1].data = "12346";
  EXPECT_NE(original, Of(raw));
}

}  // namespace
}  // namespace baton
