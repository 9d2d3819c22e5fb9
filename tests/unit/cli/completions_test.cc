// SPDX-License-Identifier: Apache-2.0
// Server-sent events and the bodies of OpenAI's completions API.
#include "cli/load/completions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/load/event_stream.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::baton::testing::Fails;
using ::testing::ElementsAre;

std::vector<std::string> Events(const std::vector<std::string_view>& pieces) {
  std::vector<std::string> events;
  EventStream stream;
  for (const std::string_view piece : pieces) {
    EXPECT_OK(stream.Feed(piece, [&](std::string_view data) {
      events.emplace_back(data);
      return absl::OkStatus();
    }));
  }
  return events;
}

TEST(EventStream, GivesTheDataOfEventsWhereverTheBytesAreCut) {
  const std::string text =
      ": hello\r\n\r\ndata: one\n\nevent: x\nid: 7\ndata:two\ndata: three\n\n\ndata:\n\rdata: four\r\rdata: not "
      "ended\n";
  const auto expected = ElementsAre("one", "two\nthree", "", "four");
  EXPECT_THAT(Events({text}), expected);
  for (size_t at = 0; at <= text.size(); ++at) {
    EXPECT_THAT(Events({std::string_view(text).substr(0, at), std::string_view(text).substr(at)}), expected) << at;
  }
  EXPECT_THAT(Events({"data: a\r\ndata: b\r\n\r\n"}), ElementsAre("a\nb")) << "CR LF is one line end";
  std::vector<std::string_view> bytes;
  for (size_t i = 0; i < text.size(); ++i) bytes.push_back(std::string_view(text).substr(i, 1));
  EXPECT_THAT(Events(bytes), expected);
}

TEST(EventStream, RefusesAnEventWithoutEnd) {
  EventStream stream;
  const std::string piece = "data: " + std::string(size_t{64} << 10, 'x');
  absl::Status status;
  int fed = 0;
  for (; status.ok() && fed < 100; ++fed) {
    status = stream.Feed(piece, [](std::string_view) { return absl::OkStatus(); });
  }
  EXPECT_TRUE(Fails(status, absl::StatusCode::kResourceExhausted, "an event has more than 1048576 bytes"));
  EXPECT_LE(fed, 17);
}

TEST(CompletionBody, ForcesTheLength) {
  const auto json = nlohmann::json::parse(CompletionBody(
      {.model = "m", .cache_salt = "s", .prompt = {5, 6}, .output_tokens = 9}, {.wants_token_ids = true}));
  EXPECT_EQ(json["prompt"], nlohmann::json({5, 6}));
  EXPECT_EQ(json["max_tokens"], 9);
  EXPECT_EQ(json["min_tokens"], 9);
  EXPECT_EQ(json["ignore_eos"], true);
  EXPECT_EQ(json["temperature"], 0);
  EXPECT_EQ(json["stream"], true);
  EXPECT_EQ(json["stream_options"]["include_usage"], true);
  EXPECT_EQ(json["cache_salt"], "s");
  EXPECT_EQ(json["return_token_ids"], true);
  const auto plain = nlohmann::json::parse(CompletionBody({.model = "m", .prompt = {1}, .output_tokens = 1}, {}));
  EXPECT_FALSE(plain.contains("cache_salt"));
  EXPECT_FALSE(plain.contains("return_token_ids"));
}

TEST(CompletionEvent, IsReadOrRefusedByName) {
  ASSERT_OK_AND_ASSIGN(const CompletionEvent token,
                       ParseCompletionEvent(R"({"choices": [{"text": "a", "token_ids": [3, 4]}], "usage": null})"));
  EXPECT_TRUE(token.has_choice);
  EXPECT_TRUE(token.has_text);
  EXPECT_FALSE(token.is_finish);
  EXPECT_FALSE(token.usage.has_value());
  EXPECT_THAT(token.token_ids, ElementsAre(3, 4));
  ASSERT_OK_AND_ASSIGN(const CompletionEvent usage,
                       ParseCompletionEvent(R"({"choices": [], "usage": {"prompt_tokens": 9,
      "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 4}}})"));
  EXPECT_FALSE(usage.has_choice);
  EXPECT_EQ(usage.usage->prompt_tokens, 9u);
  EXPECT_EQ(usage.usage->cached_tokens, 4u);
  EXPECT_EQ(usage.usage->completion_tokens, 7);

  const auto fails = [](const char* data, const char* message) {
    return Fails(ParseCompletionEvent(data), absl::StatusCode::kInvalidArgument, message);
  };
  EXPECT_TRUE(fails("nonsense", "expected an event with a JSON object, got nonsense"));
  EXPECT_TRUE(fails("[1]", "expected an event with a JSON object"));
  EXPECT_TRUE(fails("{}", "expected an event with choices or usage, got {}"));
  EXPECT_TRUE(fails(R"({"choices": [{}]})", "expected choices[0].text, a text"));
  EXPECT_TRUE(fails(R"({"choices": [7]})", "expected choices[0].text, a text"));
  EXPECT_TRUE(Fails(ParseCompletionEvent(R"({"error": {"message": "out of pages"}})"), absl::StatusCode::kUnavailable,
                    "out of pages"));
}

TEST(ErrorMessage, IsTheServersOrTheBodysBeginning) {
  EXPECT_EQ(ErrorMessage(R"({"error": {"message": "too long", "code": 400}})"), "too long");
  EXPECT_EQ(ErrorMessage(R"({"message": "too many"})"), "too many");
  EXPECT_EQ(ErrorMessage(R"({"error": "plain"})"), "plain");
  EXPECT_EQ(ErrorMessage("<html>"), "<html>");
  EXPECT_EQ(ErrorMessage(std::string(1000, 'x')).size(), 203u);
}

CompletionEvent TextEvent() { return {.has_choice = true, .has_text = true}; }
CompletionEvent UsageEvent(int tokens) { return {.usage = CompletionEvent::Usage{.completion_tokens = tokens}}; }

std::vector<int> Counts(const std::vector<CompletionEvent>& events) {
  TokenCounter counter;
  for (const CompletionEvent& event : events) counter.Add(event, SteadyTime());
  std::vector<int> counts;
  for (const TokenArrival& arrival : std::move(counter).Finish()) counts.push_back(arrival.tokens);
  return counts;
}

TEST(TokenCounter, AgreesWithUsage) {
  EXPECT_THAT(Counts({TextEvent(), TextEvent()}), ElementsAre(1, 1)) << "without usage, an event is a token";
  const CompletionEvent end = {.has_choice = true, .is_finish = true};
  EXPECT_THAT(Counts({TextEvent(), end}), ElementsAre(1)) << "the end has no token";
  EXPECT_THAT(Counts({TextEvent(), TextEvent(), TextEvent(), UsageEvent(8)}), ElementsAre(1, 3, 4));
  EXPECT_THAT(Counts({TextEvent(), UsageEvent(3)}), ElementsAre(3));
  EXPECT_THAT(Counts({TextEvent(), TextEvent(), TextEvent(), UsageEvent(2)}), ElementsAre(1, 1));
  EXPECT_THAT(Counts({TextEvent(), TextEvent(), UsageEvent(0)}), ElementsAre(1, 1)) << "0 tells nothing";
  CompletionEvent first = TextEvent(), second = TextEvent();
  first.usage = CompletionEvent::Usage{.completion_tokens = 1};
  second.usage = CompletionEvent::Usage{.completion_tokens = 5};
  EXPECT_THAT(Counts({first, second, UsageEvent(5)}), ElementsAre(1, 4)) << "usage of each event";
  CompletionEvent ids = TextEvent();
  ids.token_ids = {1, 2, 3};
  EXPECT_THAT(Counts({ids, ids}), ElementsAre(3, 3));
}

TEST(ParseModels, TakesWhatServersTell) {
  ASSERT_OK_AND_ASSIGN(const auto models, ParseModels(R"({"object": "list", "data": [
      {"id": "a", "max_model_len": 2048}, {"id": "b", "meta": {"n_vocab": 32000, "n_ctx": 512}}, {"id": "c"}]})"));
  ASSERT_EQ(models.size(), 3u);
  EXPECT_EQ(models[0].context_tokens, 2048);
  EXPECT_EQ(models[0].vocab_size, 0);
  EXPECT_EQ(models[1].vocab_size, 32000);
  EXPECT_EQ(models[1].context_tokens, 512);
  EXPECT_TRUE(Fails(ParseModels("[]"), absl::StatusCode::kInvalidArgument, "expected a JSON object with data"));
  EXPECT_TRUE(Fails(ParseModels(R"({"data": [{}]})"), absl::StatusCode::kInvalidArgument, "expected an id"));
}

}  // namespace
}  // namespace baton
