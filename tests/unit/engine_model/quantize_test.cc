// SPDX-License-Identifier: Apache-2.0
// Float weights quantized when they are loaded.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/model_runner.h"
#include "tests/tiny_models.h"

namespace baton {
namespace {

class QuantizeTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { SKIP_WITHOUT_CPU_FOR(GetParam()); }
  static std::unique_ptr<Model> Load(std::optional<TensorType> quantize) {
    return testing::LoadModel(testing::DemoModel("demo-chat"), {.kernels = GetParam(), .quantize = quantize});
  }
};

TEST_P(QuantizeTest, LogitsStayNearAndWeightsShrink) {
  const std::vector<TokenId> prompt = {4090, 4092, 52, 310, 17, 92, 1001, 4091};
  const std::unique_ptr<Model> exact = Load({});
  ASSERT_NE(exact, nullptr);
  const std::vector<float> want = testing::AllLogits(*exact, prompt);
  for (const auto& [type, share, error] :
       {std::tuple(TensorType::kQ8_0, 0.54, 0.15), std::tuple(TensorType::kQ4_0, 0.29, 0.8)}) {
    const std::unique_ptr<Model> model = Load(type);
    ASSERT_NE(model, nullptr);
    EXPECT_LT(static_cast<double>(model->weight_bytes()), share * static_cast<double>(exact->weight_bytes()));
    EXPECT_LT(testing::RelativeError(testing::AllLogits(*model, prompt), want), error) << InfoOf(type).name;
    EXPECT_NE(model->numerics_id(), exact->numerics_id());
    EXPECT_NE(model->numerics_id().find(type == TensorType::kQ8_0 ? "-bf16-to-q8_0/" : "-bf16-to-q4_0/"),
              std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(, QuantizeTest, ::testing::ValuesIn(testing::KernelFamilies()),
                         [](const auto& info) { return testing::AsTestName(info.param); });

}  // namespace
}  // namespace baton
