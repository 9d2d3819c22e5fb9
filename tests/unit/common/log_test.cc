// SPDX-License-Identifier: Apache-2.0
#include "common/log.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <thread>
#include <vector>

#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::baton::testing::Fails;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

std::string Logged(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  CaptureStderr();
  Log(level, event, fields);
  return GetCapturedStderr();
}

// The line without its time.
std::string Text(std::initializer_list<LogField> fields) {
  const std::string line = Logged(LogLevel::kInfo, "test.event", fields);
  const size_t space = line.find(' ');
  return space == std::string::npos ? line : line.substr(space + 1);
}

class LogTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(InitLogging({}, "prefill-0")); }
};

TEST_F(LogTest, WritesOneLineWithTimeLevelProcessEventAndFields) {
  const std::string line = Logged(LogLevel::kWarning, "handoff.granted", {{"request", "4f"}, {"pages", 12}});
  const std::regex expected(
      R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z WARN  prefill-0 handoff\.granted request=4f pages=12\n)");
  EXPECT_TRUE(std::regex_match(line, expected)) << line;
}

TEST_F(LogTest, WritesEveryTypeOfField) {
  EXPECT_EQ(Text({{"text", std::string("a")},
                  {"yes", true},
                  {"big", std::numeric_limits<uint64_t>::max()},
                  {"share", 0.5},
                  {"wait", absl::Milliseconds(1500)}}),
            "INFO  prefill-0 test.event text=a yes=true big=18446744073709551615 share=0.5 wait=1.5s\n");
  EXPECT_EQ(Text({{"error", absl::NotFoundError("no model")}}),
            "INFO  prefill-0 test.event error=\"NOT_FOUND: no model\"\n");
}

TEST_F(LogTest, QuotesValuesThatWouldBreakTheLine) {
  EXPECT_EQ(Text({{"a", ""}, {"b", "x y"}, {"c", "k=v"}, {"d", "say \"hi\""}, {"e", "1\n2\\"}}),
            R"(INFO  prefill-0 test.event a="" b="x y" c="k=v" d="say \"hi\"" e="1\n2\\")"
            "\n");
  EXPECT_EQ(Text({{"utf8", "grün"}, {"broken", "a\xff"}}),
            "INFO  prefill-0 test.event utf8=\"grün\" broken=\"a\xEF\xBF\xBD\"\n");
}

TEST_F(LogTest, DropsLevelsBelowTheOneAskedFor) {
  EXPECT_EQ(Logged(LogLevel::kDebug, "test.event", {}), "");
  ASSERT_OK(InitLogging({.level = "error"}, "p"));
  EXPECT_EQ(Logged(LogLevel::kWarning, "test.event", {}), "");
  EXPECT_NE(Logged(LogLevel::kError, "test.event", {}), "");
  ASSERT_OK(InitLogging({.level = "debug"}, "p"));
  EXPECT_NE(Logged(LogLevel::kDebug, "test.event", {}), "");
}

TEST_F(LogTest, WritesJsonThatParses) {
  ASSERT_OK(InitLogging({.format = "json"}, "decode \"0\""));
  const std::string line = Logged(
      LogLevel::kError, "test.event",
      {{"text", "a\n\xff\"b\""}, {"pages", 12}, {"ok", false}, {"ratio", std::numeric_limits<double>::quiet_NaN()}});
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["level"], "error");
  EXPECT_EQ(json["process"], "decode \"0\"");
  EXPECT_EQ(json["event"], "test.event");
  EXPECT_EQ(json["text"], "a\n\xEF\xBF\xBD\"b\"");
  EXPECT_EQ(json["pages"], 12);
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["ratio"], "nan");
}

TEST_F(LogTest, RefusesUnknownLevelsAndFormats) {
  EXPECT_TRUE(Fails(InitLogging({.level = "loud"}, "p"), absl::StatusCode::kInvalidArgument, "log.level: \"loud\""));
  EXPECT_TRUE(Fails(InitLogging({.format = "xml"}, "p"), absl::StatusCode::kInvalidArgument, "log.format: \"xml\""));
}

TEST_F(LogTest, KeepsLinesOfManyThreadsWhole) {
  CaptureStderr();
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      for (int j = 0; j < 100; ++j) Log(LogLevel::kInfo, "test.event", {{"thread", i}, {"line", j}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::istringstream lines(GetCapturedStderr());
  const std::regex expected(R"(\S+ INFO  prefill-0 test\.event thread=\d line=\d+)");
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_TRUE(std::regex_match(line, expected)) << line;
  EXPECT_EQ(count, 400);
}

}  // namespace
}  // namespace baton
