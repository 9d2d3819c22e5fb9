// SPDX-License-Identifier: Apache-2.0
// Tiny random models against the float64 reference of tests/golden/reference.py: every family and feature, on every
// kernel family.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "engine/formats/file.h"
#include "engine/formats/safetensors.h"
#include "tests/model_runner.h"
#include "tests/status_matchers.h"
#include "tests/tiny_models.h"

namespace baton {
namespace {

constexpr double kExact = 1e-4;    // F32 KV against the weights as stored
constexpr double kRounded = 2e-2;  // 16-bit weights or KV against the weights before rounding
constexpr int kPrompts = 3;

// expected.safetensors of a tiny model.
class Expected {
 public:
  explicit Expected(const std::string& model) {
    const std::filesystem::path path = testing::TinyModel(model) / "expected.safetensors";
    auto file = MappedFile::Open(path);
    EXPECT_OK(file);
    if (!file.ok()) return;
    file_.push_back(*std::move(file));
    auto tensors = ParseSafetensors(file_.front().bytes(), path.string());
    EXPECT_OK(tensors);
    if (tensors.ok()) tensors_ = *std::move(tensors);
  }

  template <typename T>
  std::vector<T> Values(const std::string& name) const {
    for (const Tensor& tensor : tensors_) {
      if (tensor.name != name) continue;
      std::vector<T> values(tensor.data.size() / sizeof(T));
      std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
      return values;
    }
    return {};
  }
  std::vector<TokenId> Prompt(int i) const { return Values<TokenId>("prompt." + std::to_string(i)); }
  std::vector<float> Logits(int i) const { return Values<float>("logits." + std::to_string(i)); }
  std::vector<float> Unrounded(int i) const { return Values<float>("unrounded." + std::to_string(i)); }
  std::vector<float> Hidden(int i) const { return Values<float>("hidden." + std::to_string(i)); }

 private:
  std::vector<MappedFile> file_;
  std::vector<Tensor> tensors_;
};

class GoldenTiny : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override { SKIP_WITHOUT_CPU_FOR(std::get<1>(GetParam())); }
  std::string model() const { return std::get<0>(GetParam()); }
  std::unique_ptr<Model> Load(std::optional<KvType> kv_dtype) const {
    return testing::LoadModel(testing::TinyModel(model()), {.kernels = std::get<1>(GetParam()), .kv_dtype = kv_dtype});
  }
  // Products of BF16 pairs round the activations too.
  static double Exact(const Expected& expected) {
    const bool sixteen_bit_weights = !expected.Unrounded(0).empty();
    return sixteen_bit_weights && std::get<1>(GetParam()) == "avx512-bf16" ? kRounded : kExact;
  }
};

TEST_P(GoldenTiny, LogitsOfEveryPositionMatchTheReference) {
  const Expected expected(model());
  const std::unique_ptr<Model> model = Load(KvType::kF32);
  ASSERT_NE(model, nullptr);
  for (int i = 0; i < kPrompts; ++i) {
    const std::vector<float> logits = testing::AllLogits(*model, expected.Prompt(i));
    EXPECT_LT(testing::RelativeError(logits, expected.Logits(i)), Exact(expected)) << "prompt " << i;
  }
}

TEST_P(GoldenTiny, HiddenStateOfTheLastPositionMatchesTheReference) {
  const Expected expected(model());
  const std::unique_ptr<Model> model = Load(KvType::kF32);
  ASSERT_NE(model, nullptr);
  const std::unique_ptr<PagePool> pool = testing::MakePool(*model, 32);
  for (int i = 0; i < kPrompts; ++i) {
    const testing::PagedSequence sequence(*pool, expected.Prompt(i), 200);
    const SequenceInput input = sequence.Next(200, Want::kLastHidden);
    ForwardOutput output;
    ASSERT_OK(model->Forward({&input, 1}, *pool, nullptr, output));
    ASSERT_EQ(output.rows.size(), 1U);
    EXPECT_EQ(output.rows[0].count, 1);
    EXPECT_LT(testing::RelativeError(output.row(0).first(model->config().hidden_size), expected.Hidden(i)),
              Exact(expected));
  }
}

TEST_P(GoldenTiny, SixteenBitStorageStaysNearTheUnroundedReference) {
  const Expected expected(model());
  const std::unique_ptr<Model> model = Load(KvType::kBF16);
  ASSERT_NE(model, nullptr);
  for (int i = 0; i < kPrompts; ++i) {
    const std::vector<float> unrounded = expected.Unrounded(i);  // only there for 16-bit weights
    const std::vector<float> logits = testing::AllLogits(*model, expected.Prompt(i));
    EXPECT_LT(testing::RelativeError(logits, unrounded.empty() ? expected.Logits(i) : unrounded), kRounded)
        << "prompt " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTiny,
                         ::testing::Combine(::testing::ValuesIn(testing::TinyModelNames()),
                                            ::testing::ValuesIn(testing::KernelFamilies())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + testing::AsTestName(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace baton
