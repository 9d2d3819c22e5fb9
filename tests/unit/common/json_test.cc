// SPDX-License-Identifier: Apache-2.0
#include "common/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/status_matchers.h"

namespace baton {
namespace {

using testing::Fails;
using testing::kInvalid;

TEST(ParseJson, NamesTheFileAndTheByteOfASyntaxError) {
  EXPECT_TRUE(Fails(ParseJson(R"({"a": 1,})", "config.json"), kInvalid, "config.json: not valid JSON at byte 9"));
  EXPECT_TRUE(Fails(ParseJson("", "config.json"), kInvalid, "config.json"));
  EXPECT_TRUE(Fails(ParseJson("{} {}", "config.json"), kInvalid, "config.json"));
  EXPECT_TRUE(Fails(ParseJson("{\"a\": \"\xff\"}", "config.json"), kInvalid, "config.json"));
  EXPECT_TRUE(Fails(ParseJson(R"({"a": 1e999})", "config.json"), kInvalid, "config.json"));
}

TEST(ParseJson, RefusesDeepNestingWithoutUsingTheStack) {
  EXPECT_OK(ParseJson(std::string(64, '[') + std::string(64, ']'), "x"));
  EXPECT_TRUE(Fails(ParseJson(std::string(65, '[') + std::string(65, ']'), "x"), kInvalid, "deeper than 64"));
  EXPECT_TRUE(Fails(ParseJson(std::string(8'000'000, '['), "x"), kInvalid, "deeper than 64"));
}

TEST(ParseJson, DoesNotCountBracketsInStrings) {
  EXPECT_OK(ParseJson("\"" + std::string(100, '[') + "\\\"" + std::string(100, '{') + "\"", "x"));
}

TEST(ParseJson, RefusesAKeyThatOccursTwice) {
  EXPECT_TRUE(Fails(ParseJson(R"({"a": {"k": 1, "k": 2}})", "x"), kInvalid, R"(key "k" occurs twice)"));
  EXPECT_OK(ParseJson(R"({"a": {"k": 1}, "b": {"k": 2}, "c": [{"k": 3}, {"k": 4}]})", "x"));
}

TEST(JsonFields, LeavesAbsentAndNullFieldsAlone) {
  const nlohmann::json json = {{"null", nullptr}};
  JsonFields fields(json, "x");
  int number = 7;
  fields.Int("null", 0, 9, number).Int("absent", 0, 9, number);
  EXPECT_EQ(number, 7);
  EXPECT_OK(fields.status());
}

TEST(JsonFields, FirstErrorNamesFieldExpectationAndValue) {
  const nlohmann::json json = {{"layers", "many"}, {"size", 5000000000}};
  JsonFields fields(json, "config.json");
  int number = 0;
  fields.Int("layers", 1, 64, number).Int("size", 1, 64, number);
  EXPECT_TRUE(Fails(fields.status(), kInvalid, "config.json: layers: expected an integer from 1 to 64, got \"many\""));
}

TEST(JsonFields, KnowsEachKindByItsBounds) {
  const nlohmann::json json = {{"int", UINT64_MAX}, {"real", 1.5}, {"text", "t"}, {"bool", true}};
  int integer = 0;
  double real = 0;
  bool boolean = false;
  std::string text;
  EXPECT_FALSE(JsonFields(json, "x").Int("int", -1, INT64_MAX, integer).status().ok());
  EXPECT_FALSE(JsonFields(json, "x").Int("real", 0, 9, integer).status().ok());
  EXPECT_FALSE(JsonFields(json, "x").Number("real", 0, 1, real).status().ok());
  EXPECT_FALSE(JsonFields(json, "x").Bool("text", boolean).status().ok());
  EXPECT_FALSE(JsonFields(json, "x").String("bool", text).status().ok());
  EXPECT_FALSE(JsonFields(json, "x").Required("absent").status().ok());
  EXPECT_OK(JsonFields(json, "x").Number("real", 0, 2, real).Bool("bool", boolean).String("text", text).status());
  EXPECT_EQ(real, 1.5);
  EXPECT_TRUE(boolean);
  EXPECT_EQ(text, "t");
}

TEST(JsonFields, RefusesWhatIsNoObject) {
  const nlohmann::json json = {1, 2};
  EXPECT_TRUE(Fails(JsonFields(json, "x").status(), kInvalid, "expected a JSON object, got [1,2]"));
}

}  // namespace
}  // namespace baton
