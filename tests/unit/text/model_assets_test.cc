// SPDX-License-Identifier: Apache-2.0
#include "text/assets/model_assets.h"

#include <gtest/gtest.h>

#include "test_tokenizer.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using testing::Fails;

AssetFiles DemoAssets() {
  AssetFiles files;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"}) {
    files[name] = testing::DemoFile(name);
  }
  return files;
}

TEST(ModelAssetsTest, BuildsTheAssetsOfTheDemoModel) {
  const AssetFiles files = DemoAssets();
  ASSERT_OK_AND_ASSIGN(const auto assets, ModelAssets::Build(AssetsFingerprint(files), files));
  EXPECT_EQ(assets->end_tokens, (std::vector<TokenId>{4091, 4095}));
  EXPECT_EQ(assets->special_tokens.bos, "<|begin_of_text|>");
  EXPECT_EQ(assets->special_tokens.eos, "<|end|>");
  EXPECT_OK(assets->templates.status());
  EXPECT_EQ(assets->tokenizer->vocab_size(), 4096);
}

TEST(ModelAssetsTest, RefusesFilesWithAnotherFingerprint) {
  AssetFiles files = DemoAssets();
  const std::string fingerprint = AssetsFingerprint(files);
  files["generation_config.json"] += " ";
  EXPECT_TRUE(Fails(ModelAssets::Build(fingerprint, files), absl::StatusCode::kDataLoss, fingerprint));
}

TEST(ModelAssetsTest, EndTokensFallBackToTheTokenizersEos) {
  AssetFiles files = DemoAssets();
  files.erase("generation_config.json");
  ASSERT_OK_AND_ASSIGN(const auto assets, ModelAssets::Build(AssetsFingerprint(files), files));
  EXPECT_EQ(assets->end_tokens, (std::vector<TokenId>{4095}));
}

TEST(ModelAssetsTest, ATemplateThatDoesNotParseOnlyDisablesChat) {
  AssetFiles files = DemoAssets();
  files["chat_template.jinja"] = "{% for";
  ASSERT_OK_AND_ASSIGN(const auto assets, ModelAssets::Build(AssetsFingerprint(files), files));
  EXPECT_TRUE(Fails(assets->templates.status(), absl::StatusCode::kInvalidArgument, "chat template"));
}

TEST(ModelAssetsTest, StatusOfTemplatesNamesTheMissingOrInvalidTemplate) {
  EXPECT_TRUE(absl::IsNotFound(PromptTemplates("", "").status()));
  EXPECT_TRUE(absl::IsNotFound(PromptTemplates("", "{{ tools }}").status()));
  EXPECT_OK(PromptTemplates("{{ messages }}", "").status());
  EXPECT_TRUE(Fails(PromptTemplates("{{ messages }}", "\n{{ tools|xmlattr }}").status(),
                    absl::StatusCode::kUnimplemented, "line 2"));
}

TEST(ModelAssetsTest, ATokenizerThatDoesNotParseIsAnError) {
  AssetFiles files = DemoAssets();
  files["tokenizer.json"] = "{";
  EXPECT_FALSE(ModelAssets::Build(AssetsFingerprint(files), files).ok());
  files = DemoAssets();
  files["tokenizer_config.json"] = "[]";
  EXPECT_FALSE(ModelAssets::Build(AssetsFingerprint(files), files).ok());
}

std::string Rendered(const AssetFiles& files, const Conversation& conversation) {
  const auto assets = *ModelAssets::Build(AssetsFingerprint(files), files);
  return assets->RenderChat(conversation, "chat").value_or("");
}

TEST(ModelAssetsTest, TemplatesSeeAllSpecialTokens) {
  AssetFiles files = DemoAssets();
  auto config = nlohmann::json::parse(files["tokenizer_config.json"]);
  config["pad_token"] = "<pad>";
  config["extra_special_tokens"] = {{"image_token", "<image>"}};
  config["chat_template"] = "{{ pad_token }}{{ image_token }}{{ unk_token is defined }}";
  files["tokenizer_config.json"] = config.dump();
  EXPECT_EQ(Rendered(files, {.messages = {{"user", "hi"}}}), "<pad><image>False");
}

TEST(ModelAssetsTest, TemplateFilesOverrideTheTemplatesOfTheConfig) {
  const Conversation plain{.messages = {{"user", "hi"}}};
  const Conversation tools{.messages = {{"user", "hi"}}, .tools = {{"f", "", ""}}};
  AssetFiles files = DemoAssets();
  auto config = nlohmann::json::parse(files["tokenizer_config.json"]);
  config["chat_template"] = {{{"name", "default"}, {"template", "{{ bos_token }}{{ eos_token }}"}},
                             {{"name", "tool_use"}, {"template", "{{ tools|length }}"}}};
  files["tokenizer_config.json"] = config.dump();
  EXPECT_EQ(Rendered(files, plain), "<|begin_of_text|><|end|>");
  EXPECT_EQ(Rendered(files, tools), "1");
  files["additional_chat_templates/tool_use.jinja"] = "file's {{ tools|length }}";
  EXPECT_EQ(Rendered(files, plain), "<|begin_of_text|><|end|>");
  EXPECT_EQ(Rendered(files, tools), "file's 1");
  files["chat_template.jinja"] = "file's";
  EXPECT_EQ(Rendered(files, plain), "file's");
  files.erase("additional_chat_templates/tool_use.jinja");
  EXPECT_EQ(Rendered(files, tools), "") << "with chat_template.jinja, the config's tool template is not used";
}

}  // namespace
}  // namespace baton
