#include "router/model_assets.h"

#include <gtest/gtest.h>

#include "demo_assets.h"
#include "tests/status_matchers.h"

namespace baton::router {
namespace {

using testing::Fails;

TEST(ModelAssetsTest, BuildsTheDemoModels) {
  const AssetFiles files = DemoAssets();
  ASSERT_OK_AND_ASSIGN(const auto assets, ModelAssets::Build(AssetsFingerprint(files), files));
  EXPECT_EQ(assets->end_tokens, (std::vector<TokenId>{4091, 4095}));
  EXPECT_EQ(assets->bos_text, "<|begin_of_text|>");
  EXPECT_EQ(assets->eos_text, "<|end|>");
  ASSERT_NE(assets->chat_template, nullptr) << assets->chat_status;
  EXPECT_EQ(assets->tokenizer->vocab_size(), 4096);
}

TEST(ModelAssetsTest, FilesThatAreNotThoseAnnouncedAreRefused) {
  AssetFiles files = DemoAssets();
  const std::string fingerprint = AssetsFingerprint(files);
  files["generation_config.json"] += " ";
  EXPECT_TRUE(Fails(ModelAssets::Build(fingerprint, files), absl::StatusCode::kDataLoss, fingerprint));
}

TEST(ModelAssetsTest, EndTokensFallBackToTheTokenizersOwn) {
  AssetFiles files = DemoAssets();
  files.erase("generation_config.json");
  ASSERT_OK_AND_ASSIGN(const auto assets, ModelAssets::Build(AssetsFingerprint(files), files));
  EXPECT_EQ(assets->end_tokens, (std::vector<TokenId>{4095}));
}

TEST(ModelAssetsTest, ATemplateThatDoesNotParseOnlyDisablesChat) {
  AssetFiles files = DemoAssets();
  files["chat_template.jinja"] = "{% for";
  ASSERT_OK_AND_ASSIGN(const auto assets, ModelAssets::Build(AssetsFingerprint(files), files));
  EXPECT_EQ(assets->chat_template, nullptr);
  EXPECT_TRUE(Fails(assets->chat_status, absl::StatusCode::kInvalidArgument, "chat template"));
}

TEST(ModelAssetsTest, ATokenizerThatDoesNotParseIsAnError) {
  AssetFiles files = DemoAssets();
  files["tokenizer.json"] = "{";
  EXPECT_FALSE(ModelAssets::Build(AssetsFingerprint(files), files).ok());
  files = DemoAssets();
  files["tokenizer_config.json"] = "[]";
  EXPECT_FALSE(ModelAssets::Build(AssetsFingerprint(files), files).ok());
}

}  // namespace
}  // namespace baton::router
