// Damaged files are refused or read as what they now say; they never take the process down. Most telling with
// AddressSanitizer: each buffer ends where its allocation ends.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

#include "engine/formats/file.h"
#include "engine/formats/generation_config.h"
#include "engine/formats/safetensors.h"
#include "tests/mutate.h"
#include "tests/safetensors_writer.h"
#include "tests/status_matchers.h"
#include "tests/tiny_models.h"

namespace baton {
namespace {

constexpr int kMutations = 5000;

// Reads every byte that the tensors claim, so that a claim past the end is noticed.
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
  EXPECT_LT(accepted, kMutations / 2);  // most damage is noticed: a flipped bit of a number cannot be
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

}  // namespace
}  // namespace baton
