// SPDX-License-Identifier: Apache-2.0
// Templates of public models against what Python's jinja2 renders for each: those of tests/golden/chat_templates, and
// more in the shared data.
#include <gtest/gtest.h>

#include <filesystem>

#include "test_tokenizer.h"
#include "tests/status_matchers.h"
#include "text/chat/chat_template.h"

namespace baton {
namespace {

using Json = nlohmann::ordered_json;

TemplateValue FromJson(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_array()) {
    TemplateValue::List list;
    for (const Json& item : json) list.push_back(FromJson(item));
    return list;
  }
  if (json.is_object()) {
    TemplateValue::Dict dict;
    for (const auto& [key, value] : json.items()) dict.emplace_back(key, FromJson(value));
    return dict;
  }
  return {};
}

TemplateValue::List ListFromJson(const Json& json) {
  TemplateValue::List list;
  for (const Json& item : json) list.push_back(FromJson(item));
  return list;
}

void ExpectRenderedRows(const std::filesystem::path& folder) {
  const Json rows = Json::parse(testing::ReadFile(folder / "expected.json"));
  ASSERT_FALSE(rows.empty());
  for (size_t i = 0; i < rows.size(); ++i) {
    const Json& row = rows[i];
    SCOPED_TRACE("row " + std::to_string(i) + ", " + row["template"].get<std::string>());
    const auto parsed = ChatTemplate::Parse(testing::ReadFile(folder / row["template"].get<std::string>()));
    ASSERT_OK(parsed);
    ChatTemplateInputs inputs;
    inputs.messages = ListFromJson(row["messages"]);
    inputs.tools = ListFromJson(row.value("tools", Json::array()));
    inputs.bos_token = row["bos_token"];
    inputs.eos_token = row["eos_token"];
    inputs.add_generation_prompt = row["add_generation_prompt"];
    inputs.now = absl::FromCivil(absl::CivilDay(2024, 7, 26), absl::LocalTimeZone());
    const absl::StatusOr<std::string> prompt = (*parsed)->Render(inputs);
    if (row.contains("error")) {
      EXPECT_EQ(prompt.status(), absl::InvalidArgumentError(row["error"].get<std::string>()));
    } else {
      ASSERT_OK(prompt);
      EXPECT_EQ(*prompt, row["expected"].get<std::string>());
    }
  }
}

TEST(ChatTemplateModelsTest, EveryRowRendersAsExpected) {
  ExpectRenderedRows(testing::SourceFolder() / "tests/golden/chat_templates");
}

TEST(ChatTemplateModelsTest, EveryRowOfTheSharedDataRendersAsExpected) {
  const auto folder = testing::SharedData("chat_templates");
  if (!folder.ok()) GTEST_SKIP() << folder.status().message();
  ExpectRenderedRows(*folder);
}

}  // namespace
}  // namespace baton
