// Compares our renders of public models' chat templates with jinja2's renders. The expected rows are outside the
// repository, in the folder BATON_SHARED.
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

TEST(ChatTemplateModelsTest, RendersLikeJinja2) {
  const std::filesystem::path folder = testing::SharedFolder() / "chat_templates";
  if (!std::filesystem::exists(folder / "expected.json")) {
    GTEST_SKIP() << "no " << (folder / "expected.json") << "; set BATON_SHARED to the folder above chat_templates";
  }
  const Json rows = Json::parse(testing::ReadFile(folder / "expected.json"));
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

}  // namespace
}  // namespace baton
