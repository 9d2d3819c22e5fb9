// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/step_profile.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/status_matchers.h"
#include "tests/temp_folder.h"

namespace baton {
namespace {

using nlohmann::json;
using testing::Fails;
using testing::kInvalid;
using testing::TempFolder;

StepProfile Profile() {
  return {.model = "a model",
          .numerics_id = "id",
          .threads = 2,
          .layers = 12,
          .page_tokens = 16,
          .kv_token_bytes = 3072,
          .max_context_tokens = 2048,
          .cost = {.step = 4e-3,
                   .prompt_token = 3e-4,
                   .decode_row = 2e-4,
                   .prompt_attended = 1e-8,
                   .decode_attended = 2e-8},
          .steps = {{.prompt_tokens = 32, .decode_rows = 0, .context_tokens = 64, .seconds = 0.014},
                    {.prompt_tokens = 0, .decode_rows = 8, .context_tokens = 64, .seconds = 0.006}}};
}

TEST(StepProfileTest, AWrittenProfileIsReadAgain) {
  const TempFolder folder;
  const StepProfile written = Profile();
  ASSERT_OK(WriteStepProfile(written, folder.path() / "profile.json"));
  ASSERT_OK_AND_ASSIGN(const StepProfile read, ReadStepProfile(folder.path() / "profile.json"));
  EXPECT_EQ(ToJson(read), ToJson(written));
  EXPECT_EQ(read.kv_token_bytes, 3072);
  EXPECT_EQ(read.max_context_tokens, 2048);
  EXPECT_EQ(read.cost.prompt_attended, 1e-8);
  EXPECT_EQ(read.cost.decode_attended, 2e-8);
  ASSERT_EQ(read.steps.size(), 2);
  EXPECT_EQ(read.steps[1].decode_rows, 8);
}

TEST(StepProfileTest, TheErrorOfAStepIsThatOfItsWork) {
  StepProfile profile = Profile();
  profile.cost = {.step = 1e-3, .prompt_token = 0, .decode_row = 1e-3, .decode_attended = 1e-5};
  const StepProfile::Step step{.prompt_tokens = 0, .decode_rows = 2, .context_tokens = 99, .seconds = 4e-3};
  EXPECT_EQ(step.work().decode_attended, 2 * 100);
  EXPECT_NEAR(RelativeError(profile, step), 5.0 / 4 - 1, 1e-12);
}

TEST(StepProfileTest, RefusesWhatIsWrongByField) {
  struct Case {
    const char* pointer;
    json value;  // null removes the field
    const char* error;
  };
  const std::vector<Case> cases = {
      {"/format", "something else", "F: format: expected \"baton step profile\", got \"something else\""},
      {"/version", 2, "F: version: expected an integer from 1 to 1, got 2"},
      {"/version", nullptr, "F: version: expected a value"},
      {"/model", nullptr, "F: model: expected an object"},
      {"/model/layers", 0, "F: model: layers: expected an integer"},
      {"/model/kv_token_bytes", "many", "F: model: kv_token_bytes: expected an integer"},
      {"/model/max_context_tokens", nullptr, "F: model: max_context_tokens: expected a value"},
      {"/step_cost/decode_row_seconds", -1, "F: step_cost: decode_row_seconds: expected a number"},
      {"/step_cost/prompt_attended_token_seconds", nullptr,
       "F: step_cost: prompt_attended_token_seconds: expected a value"},
      {"/steps", 7, "F: steps: expected an array"},
      {"/steps/1/seconds", 0, "F: steps[1]: seconds: expected a number"},
      {"/steps/1/decode_rows", 0, "F: steps[1]: prompt_tokens: expected at least 1 without decode_rows"},
  };
  for (const auto& [pointer, value, error] : cases) {
    json changed = json::parse(ToJson(Profile()));
    changed[json::json_pointer(pointer)] = value;
    EXPECT_TRUE(Fails(ParseStepProfile(changed.dump(), "F"), kInvalid, error)) << pointer;
  }
  json no_cost = json::parse(ToJson(Profile()));
  for (auto& figure : no_cost["step_cost"]) figure = 0;
  EXPECT_TRUE(Fails(ParseStepProfile(no_cost.dump(), "F"), kInvalid, "F: step_cost: step_seconds: expected a time"));
  EXPECT_TRUE(Fails(ParseStepProfile("[]", "F"), kInvalid, "F: expected a JSON object"));
  EXPECT_TRUE(Fails(ParseStepProfile("{", "F"), kInvalid, "F"));
  EXPECT_TRUE(Fails(ReadStepProfile("/nope/profile.json"), absl::StatusCode::kNotFound, "/nope/profile.json"));
}

}  // namespace
}  // namespace baton
