// SPDX-License-Identifier: Apache-2.0
#include "text/assets/generation_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::testing::ElementsAre;
using testing::Fails;
using testing::kInvalid;

TEST(ParseGenerationConfig, ReadsEveryField) {
  ASSERT_OK_AND_ASSIGN(const GenerationConfig config,
                       ParseGenerationConfig(R"({"bos_token_id": 1, "eos_token_id": [7, 2, 7], "do_sample": true,
                         "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0, "repetition_penalty": 1.05,
                         "max_length": 2048, "transformers_version": "4.51.0"})",
                                             "g"));
  EXPECT_EQ(config.bos_token_id, 1);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(2, 7));
  EXPECT_EQ(config.do_sample, true);
  EXPECT_EQ(config.temperature, 0.6);
  EXPECT_EQ(config.top_k, 20);
  EXPECT_EQ(config.top_p, 0.95);
  EXPECT_EQ(config.min_p, 0.0);
  EXPECT_EQ(config.repetition_penalty, 1.05);
}

TEST(ParseGenerationConfig, TakesASingleEndToken) {
  ASSERT_OK_AND_ASSIGN(const GenerationConfig config, ParseGenerationConfig(R"({"eos_token_id": 9})", "g"));
  EXPECT_THAT(config.eos_token_ids, ElementsAre(9));
}

TEST(ParseGenerationConfig, AbsentFieldsAreEmpty) {
  for (const char* text : {"", "{}", R"({"temperature": null, "eos_token_id": null})"}) {
    ASSERT_OK_AND_ASSIGN(const GenerationConfig config, ParseGenerationConfig(text, "g"));
    EXPECT_TRUE(config.eos_token_ids.empty());
    EXPECT_FALSE(config.temperature.has_value());
    EXPECT_FALSE(config.do_sample.has_value());
  }
}

TEST(ParseGenerationConfig, ErrorsNameTheField) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"eos_token_id": [1, "x"]})", "g: eos_token_id: expected a token id or a list of token ids"},
      {R"({"eos_token_id": -1})", "g: eos_token_id"},
      {R"({"eos_token_id": 4294967296})", "g: eos_token_id"},
      {R"({"bos_token_id": 1.5})", "g: bos_token_id"},
      {R"({"temperature": -0.1})", "g: temperature: expected a number"},
      {R"({"top_p": 1.1})", "g: top_p: expected a number from 0 to 1, got 1.1"},
      {R"({"repetition_penalty": 0})", "g: repetition_penalty"},
      {R"({"do_sample": 1})", "g: do_sample: expected true or false, got 1"},
      {"[]", "g: expected a JSON object"},
      {"{", "g: not valid JSON"},
  };
  for (const auto& [text, error] : cases) EXPECT_TRUE(Fails(ParseGenerationConfig(text, "g"), kInvalid, error)) << text;
}

}  // namespace
}  // namespace baton
