// SPDX-License-Identifier: Apache-2.0
// A damaged file must give an error or a parsed result, never a crash. Each buffer is an allocation of exactly the
// file's size, so AddressSanitizer finds every read past its end.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "engine/formats/file.h"
#include "engine/formats/gguf_convert.h"
#include "engine/formats/safetensors.h"
#include "tests/files.h"
#include "tests/gguf_builder.h"
#include "tests/mutate.h"
#include "tests/safetensors_writer.h"
#include "tests/status_matchers.h"
#include "tests/tiny_models.h"
#include "text/assets/generation_config.h"

namespace baton {
namespace {

constexpr int kMutations = 5000;

// Reads all data of the tensors, so that AddressSanitizer finds data outside the file.
int SumBytes(const std::vector<Tensor>& tensors) {
  int sum = 0;
  for (const Tensor& tensor : tensors) {
    for (const std::byte byte : tensor.data) sum += static_cast<int>(byte);
  }
  return sum;
}

TEST(FormatsMutation, Safetensors) {
  const std::string file = testing::SafetensorsFile({{"model.embed_tokens.weight", "F32", {2, 3}, std::string(24, 'a')},
                                                     {"model.norm.weight", "BF16", {4}, std::string(8, 'b')},
                                                     {"lm_head.weight", "F16", {2, 2}, std::string(8, 'c')}});
  int accepted = 0;
  for (int seed = 0; seed < kMutations; ++seed) {
    const std::string mutated = testing::Mutate(file, seed);
    const auto exact = std::make_unique<std::byte[]>(mutated.size());
    std::memcpy(exact.get(), mutated.data(), mutated.size());
    const auto tensors = ParseSafetensors({exact.get(), mutated.size()}, "m");
    if (!tensors.ok()) {
      EXPECT_TRUE(testing::Fails(tensors, absl::StatusCode::kInvalidArgument, "m: "));
      continue;
    }
    ++accepted;
    EXPECT_GE(SumBytes(*tensors), 0);
  }
  EXPECT_LT(accepted, kMutations / 2);  // damage to tensor data and some numbers stays valid
}

TEST(FormatsMutation, IndexAndGenerationConfig) {
  const auto index = ReadTextFile(testing::TinyModel("llama_sharded") / "model.safetensors.index.json", 1 << 20);
  const auto generation = ReadTextFile(testing::DemoModel("demo-chat") / "generation_config.json", 1 << 20);
  ASSERT_OK(index);
  ASSERT_OK(generation);
  for (int seed = 0; seed < kMutations; ++seed) {
    const auto files = ParseSafetensorsIndex(testing::Mutate(*index, seed), "i");
    EXPECT_TRUE(files.ok() || testing::Fails(files, absl::StatusCode::kInvalidArgument, "i: "));
    const auto config = ParseGenerationConfig(testing::Mutate(*generation, seed), "g");
    EXPECT_TRUE(config.ok() || testing::Fails(config, absl::StatusCode::kInvalidArgument, "g: "));
  }
}

// Runs every reader of a parsed file.
absl::Status Convert(const GgufModel& model) {
  const auto config = GgufConfigJson(model);
  const auto texts = GgufTextAssets(model);
  EXPECT_LE(GgufTensors(model).size(), model.tensors.size());
  for (const absl::Status& status : {config.status(), texts.status()}) {
    EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status) || absl::IsUnimplemented(status)) << status;
  }
  return config.ok() ? texts.status() : config.status();
}

// Parses and converts `mutations` damaged versions of `file`. Returns how many ParseGguf accepted.
int AcceptedGgufs(const std::string& file, int mutations) {
  int accepted = 0;
  for (int seed = 0; seed < mutations; ++seed) {
    const std::string mutated = testing::Mutate(file, seed);
    const auto exact = std::make_unique<std::byte[]>(mutated.size());
    std::memcpy(exact.get(), mutated.data(), mutated.size());
    auto parsed = ParseGguf({exact.get(), mutated.size()}, "m");
    if (!parsed.ok()) {
      EXPECT_TRUE(testing::Fails(parsed, absl::StatusCode::kInvalidArgument, "m: "));
      continue;
    }
    ++accepted;
    EXPECT_GE(SumBytes(parsed->tensors), 0);
    const GgufModel model = {"m", {}, std::move(parsed->metadata), std::move(parsed->tensors)};
    const absl::Status status = Convert(model);
    EXPECT_TRUE(status.ok() || absl::StartsWith(status.message(), "m: ")) << status;
  }
  return accepted;
}

std::string SmallGguf() {
  testing::GgufBuilder builder;
  builder.String("general.architecture", "llama").Uint32("llama.embedding_length", 64).Uint32("llama.block_count", 1);
  builder.Uint32("llama.feed_forward_length", 96).Uint32("llama.context_length", 64);
  builder.Uint32("llama.attention.head_count", 4).Uint32("llama.attention.head_count_kv", 2);
  builder.Float32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  builder.String("tokenizer.ggml.model", "gpt2").String("tokenizer.ggml.pre", "gpt-2");
  builder.Strings("tokenizer.ggml.tokens", {"a", "b", "ab", "<|end|>"}).Strings("tokenizer.ggml.merges", {"a b"});
  builder.Int32s("tokenizer.ggml.token_type", {1, 1, 1, 3}).Uint32("tokenizer.ggml.eos_token_id", 3);
  builder.Tensor("token_embd.weight", {64, 4}, 8, 0).Tensor("rope_freqs.weight", {8}, 0, 288);
  builder.Tensor("blk.0.attn_q.weight", {64, 1}, 2, 320);
  return builder.File(std::string(356, 'x'));
}

TEST(FormatsMutation, Gguf) {
  const int accepted = AcceptedGgufs(SmallGguf(), 20'000);
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 15'000);
}

// Its metadata fill most of what is damaged; so few of the faults are in numbers that matter.
TEST(FormatsMutation, GgufOfAnotherProgram) {
  const auto path = testing::SharedData("demo-model/gguf/demo-chat-Q4_K_M.gguf");
  if (!path.ok()) GTEST_SKIP() << path.status().message();
  const std::string file = testing::ReadFile(*path);
  constexpr size_t kHeaderBytes = 133'952;  // after it only what a tensor holds is damaged
  EXPECT_EQ(AcceptedGgufs(file.substr(0, kHeaderBytes), 300), 0);
  for (int seed = 0; seed < 100; ++seed) {
    const std::string mutated = testing::Mutate(file.substr(0, kHeaderBytes), seed) + file.substr(kHeaderBytes);
    const auto parsed = ParseGguf(std::as_bytes(std::span(mutated)), "m");
    if (parsed.ok()) {
      EXPECT_GE(SumBytes(parsed->tensors), 0);
    }
  }
}

}  // namespace
}  // namespace baton
