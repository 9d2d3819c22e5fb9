// SPDX-License-Identifier: Apache-2.0
// The public API through real processes: streams, statuses, cancellation.
#include <gmock/gmock.h>

#include <cmath>

#include "cluster_test.h"
#include "golden.h"
#include "tests/files.h"
#include "tests/temp_folder.h"

namespace baton::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kQuestion[] = "What does Baton do?";
constexpr char kFirstSentence[] = "Baton is a server for disaggregated LLM inference.";
constexpr int kEnd = 4095;  // <|end|>

v1::GenerateRequest ChatRequest(const std::string& content) {
  v1::GenerateRequest request;
  v1::ChatMessage& message = *request.mutable_chat()->add_messages();
  message.set_role("user");
  message.set_content(content);
  request.mutable_sampling()->set_temperature(0);
  return request;
}

class ApiTest : public ClusterTest {
 protected:
  static void SetUpTestSuite() { StartCluster({.workers = {Prefill("p0"), Decode("d0")}}); }
};

TEST_F(ApiTest, TokensArriveOneByOneNotAllAtTheEnd) {
  const Reply reply = Generate(GreedyRequest(GoldenCases()[0].prompt, 128));

  ASSERT_TRUE(Succeeded(reply));
  EXPECT_GT(reply.chunks.size(), 8) << "the router of a busy machine joins tokens into one message";
  EXPECT_GT(reply.chunk_times.back(), reply.chunk_times.front());
  EXPECT_EQ(reply.finish.reason(), v1::FINISH_REASON_LENGTH);
  EXPECT_EQ(reply.finish.usage().completion_tokens(), 128);
}

TEST_F(ApiTest, AChatIsAnsweredUpToTheModelsEndToken) {
  const Reply reply = Generate(ChatRequest(kQuestion));

  ASSERT_TRUE(Succeeded(reply));
  EXPECT_THAT(reply.answer.text, HasSubstr(kFirstSentence));
  EXPECT_THAT(reply.answer.text, Not(HasSubstr("<|end|>")));
  EXPECT_EQ(reply.finish.reason(), v1::FINISH_REASON_STOP);
  EXPECT_EQ(reply.finish.stop_token_id(), kEnd);
}

TEST_F(ApiTest, TimingsAndWorkersAreReported) {
  const Reply reply = Generate(ChatRequest(kQuestion));

  ASSERT_TRUE(Succeeded(reply));
  const v1::Timings& timings = reply.finish.timings();
  EXPECT_GT(timings.ttft_seconds(), 0);
  EXPECT_GT(timings.tpot_seconds(), 0);
  EXPECT_GT(timings.prefill_seconds(), 0);
  EXPECT_GE(timings.total_seconds(), timings.ttft_seconds());
  ASSERT_EQ(reply.finish.attempts_size(), 1);
  EXPECT_EQ(reply.finish.attempts(0).ended_by(), "finished");
}

TEST_F(ApiTest, NothingOfAStopStringIsEverSent) {
  v1::GenerateRequest request = ChatRequest(kQuestion);
  request.mutable_sampling()->add_stop(" Prefill work");

  const Reply reply = Generate(request);

  ASSERT_TRUE(Succeeded(reply));
  EXPECT_EQ(reply.answer.text, kFirstSentence);
  EXPECT_EQ(reply.finish.reason(), v1::FINISH_REASON_STOP);
  EXPECT_EQ(reply.finish.stop_string(), " Prefill work");
}

TEST_F(ApiTest, TextHeldBackForAStopStringThatDoesNotComeIsSentInTheEnd) {
  const Reply plain = Generate(ChatRequest(kQuestion));
  v1::GenerateRequest request = ChatRequest(kQuestion);
  request.mutable_sampling()->add_stop(" Prefill workers do not");
  request.mutable_sampling()->add_stop("baton.\n");

  const Reply reply = Generate(request);

  ASSERT_TRUE(Succeeded(reply));
  EXPECT_EQ(reply.answer, plain.answer);
}

TEST_F(ApiTest, AStopTokenEndsTheAnswerUnlessMinTokensForbidsIt) {
  const GoldenCase& golden = GoldenCases()[3];
  ASSERT_EQ(golden.first_stop, 32);
  v1::GenerateRequest request = GreedyRequest(golden.prompt, 48);
  request.mutable_sampling()->add_stop_token_ids(golden.greedy_ids[5]);

  const Reply stopped = Generate(request);
  ASSERT_TRUE(Succeeded(stopped));
  EXPECT_EQ(stopped.finish.stop_token_id(), golden.greedy_ids[5]);
  EXPECT_LE(stopped.answer.token_ids.size(), 6);

  request.mutable_sampling()->set_min_tokens(20);
  const Reply longer = Generate(request);
  ASSERT_TRUE(Succeeded(longer));
  EXPECT_GE(longer.answer.token_ids.size(), 20);
}

TEST_F(ApiTest, TheNextTurnOfAChatReportsWhatWasCached) {
  v1::GenerateRequest request = ChatRequest("Please count from 29 to 40, and tell me then what a block table is.");
  const Reply first = Generate(request);
  ASSERT_TRUE(Succeeded(first));
  const Reply again = Generate(request);
  ASSERT_TRUE(Succeeded(again));
  EXPECT_EQ(again.answer, first.answer);
  const uint32_t prompt = first.finish.usage().prompt_tokens();
  EXPECT_EQ(first.finish.usage().decode_cached_prompt_tokens(), 0u);
  EXPECT_EQ(again.finish.usage().cached_prompt_tokens(), (prompt - 1) / 16 * 16);
  EXPECT_EQ(again.finish.usage().decode_cached_prompt_tokens(), prompt / 16 * 16);
  ASSERT_EQ(again.finish.attempts_size(), 1);
  EXPECT_LT(again.finish.attempts(0).kv_bytes(), first.finish.attempts(0).kv_bytes());
}

TEST_F(ApiTest, RequestsOfDifferentSaltsShareNothing) {
  v1::GenerateRequest request = ChatRequest("Please count from 50 to 60, and tell me then what a page pool is.");
  const Reply open = Generate(request);
  ASSERT_TRUE(Succeeded(open));
  for (const char* salt : {"ann", "bob"}) {
    request.set_cache_salt(salt);
    const Reply first = Generate(request);
    ASSERT_TRUE(Succeeded(first));
    EXPECT_EQ(first.finish.usage().cached_prompt_tokens(), 0u) << salt;
    EXPECT_EQ(first.answer, open.answer);
    const Reply again = Generate(request);
    ASSERT_TRUE(Succeeded(again));
    EXPECT_GT(again.finish.usage().cached_prompt_tokens(), 0u) << salt;
    EXPECT_EQ(again.answer, open.answer);
  }
}

TEST_F(ApiTest, AnAnswerOfOneTokenNeedsNoHandoff) {
  const Reply reply = Generate(GreedyRequest(GoldenCases()[0].prompt, 1));

  ASSERT_TRUE(Succeeded(reply));
  EXPECT_EQ(reply.answer.token_ids, std::vector<int32_t>{GoldenCases()[0].greedy_ids[0]});
  EXPECT_EQ(reply.finish.reason(), v1::FINISH_REASON_LENGTH);
  ASSERT_EQ(reply.finish.attempts_size(), 1);
  EXPECT_EQ(reply.finish.attempts(0).kv_bytes(), 0u);
}

TEST_F(ApiTest, LogprobsDescribeTheChosenAndTheMostLikelyTokens) {
  v1::GenerateRequest request = GreedyRequest(GoldenCases()[0].prompt, 16);
  request.mutable_sampling()->set_logprobs(4);

  const Reply reply = Generate(request);

  ASSERT_TRUE(Succeeded(reply));
  std::string bytes;
  for (const v1::Chunk& chunk : reply.chunks) {
    for (const v1::TokenLogprobs& token : chunk.logprobs()) {
      ASSERT_EQ(token.top_size(), 4);
      EXPECT_EQ(token.chosen().token_id(), token.top(0).token_id());
      EXPECT_EQ(token.chosen().logprob(), token.top(0).logprob());
      double mass = 0;
      for (int i = 0; i < 4; ++i) {
        mass += std::exp(token.top(i).logprob());
        if (i > 0) {
          EXPECT_LE(token.top(i).logprob(), token.top(i - 1).logprob());
        }
      }
      EXPECT_LE(mass, 1.0001);
      bytes += token.chosen().token();
    }
  }
  EXPECT_EQ(bytes, reply.answer.text);
}

TEST_F(ApiTest, TheReportedSeedGivesTheSameAnswerAgain) {
  v1::GenerateRequest request = GreedyRequest(GoldenCases()[0].prompt, 32);
  request.mutable_sampling()->set_temperature(1.5);
  const Reply first = Generate(request);
  ASSERT_TRUE(Succeeded(first));

  request.mutable_sampling()->set_seed(first.finish.seed());
  const Reply second = Generate(request);

  ASSERT_TRUE(Succeeded(second));
  EXPECT_EQ(second.answer, first.answer);
  request.mutable_sampling()->set_seed(first.finish.seed() + 1);
  EXPECT_NE(Generate(request).answer, first.answer);
}

TEST_F(ApiTest, ACancelledRequestFreesEverythingOnBothWorkers) {
  uint32_t used = 0;
  const Reply reply = Generate(GreedyRequest(GoldenCases()[0].prompt, 1900),
                               {.cancel_after_chunks = 3, .on_chunk = [&used](const v1::Chunk&) {
                                  const absl::StatusOr<v1::WorkerStatus> status = cluster_->WorkerStatus("d0");
                                  if (status.ok()) used = std::max(used, status->load().pages_used());
                                }});

  EXPECT_GT(used, 0) << "while it runs it holds pages";
  EXPECT_EQ(reply.status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_LT(reply.answer.token_ids.size(), 1900);
  EXPECT_OK(cluster_->WaitIdle(kAbortPatience));
}

TEST_F(ApiTest, ADeadlineFreesEverythingOnBothWorkers) {
  const Reply reply = Generate(GreedyRequest(GoldenCases()[0].prompt, 1900), {.timeout = absl::Milliseconds(60)});

  EXPECT_EQ(reply.status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_OK(cluster_->WaitIdle(kAbortPatience));
}

TEST_F(ApiTest, AnUnknownModelIsNotFound) {
  v1::GenerateRequest request = ChatRequest(kQuestion);
  request.set_model("other");
  EXPECT_TRUE(Refused(Generate(request), grpc::StatusCode::NOT_FOUND, "other"));
}

TEST_F(ApiTest, WhatCanNeverFitIsRefusedAtOnceWithTheLimit) {
  EXPECT_TRUE(Refused(Generate(GreedyRequest("a", 2048)), grpc::StatusCode::INVALID_ARGUMENT, "max_tokens"));
  v1::GenerateRequest request = GreedyRequest("", 1);
  for (int i = 0; i < 2048; ++i) request.mutable_token_ids()->add_ids(300);
  EXPECT_TRUE(Refused(Generate(request), grpc::StatusCode::INVALID_ARGUMENT, "2048"));
}

TEST_F(ApiTest, AMessageOverTheSizeLimitIsRefused) {
  const Reply reply = Generate(GreedyRequest(std::string(5 << 20, 'a'), 1));
  EXPECT_TRUE(Refused(reply, grpc::StatusCode::RESOURCE_EXHAUSTED, "message larger than max"));
  EXPECT_TRUE(Refused(reply, grpc::StatusCode::RESOURCE_EXHAUSTED, std::to_string(4 << 20)));
}

TEST_F(ApiTest, FieldsThatAreNotSupportedAreRefusedByName) {
  const std::vector<std::pair<std::string, std::function<void(v1::GenerateRequest&)>>> cases = {
      {"tenant", [](auto& r) { r.set_tenant(std::string(65, 't')); }},
      {"priority", [](auto& r) { r.set_priority(static_cast<v1::Priority>(9)); }},
      {"adapter_id", [](auto& r) { r.set_adapter_id("a"); }},
      {"n", [](auto& r) { r.set_n(2); }},
      {"prompt_logprobs", [](auto& r) { r.set_prompt_logprobs(1); }},
      {"response_format", [](auto& r) { r.mutable_response_format()->set_regex("a*"); }},
      {"chat.tools", [](auto& r) { r.mutable_chat()->add_tools()->set_name("f"); }},
      {"chat.messages[0].tool_calls",
       [](auto& r) {
         v1::ToolCall& call = *r.mutable_chat()->mutable_messages(0)->add_tool_calls();
         call.set_name("f");
         call.set_arguments_json("{}");
       }},
      {"chat.template_arguments_json: thinking",
       [](auto& r) { r.mutable_chat()->set_template_arguments_json(R"({"thinking": true})"); }},
      {"content_parts", [](auto& r) { r.mutable_chat()->mutable_messages(0)->add_content_parts()->set_type("text"); }},
  };
  for (const auto& [field, set] : cases) {
    v1::GenerateRequest request = ChatRequest(kQuestion);
    set(request);
    EXPECT_TRUE(Refused(Generate(request), grpc::StatusCode::INVALID_ARGUMENT, field)) << field;
  }
}

TEST_F(ApiTest, SamplingOutOfRangeIsRefusedByName) {
  const std::vector<std::pair<std::string, std::function<void(v1::SamplingParams&)>>> cases = {
      {"temperature", [](auto& s) { s.set_temperature(-1); }},
      {"temperature", [](auto& s) { s.set_temperature(std::nanf("")); }},
      {"top_k", [](auto& s) { s.set_top_k(-1); }},
      {"top_p", [](auto& s) { s.set_top_p(0); }},
      {"min_p", [](auto& s) { s.set_min_p(1.5); }},
      {"repetition_penalty", [](auto& s) { s.set_repetition_penalty(0); }},
      {"presence_penalty", [](auto& s) { s.set_presence_penalty(3); }},
      {"frequency_penalty", [](auto& s) { s.set_frequency_penalty(-3); }},
      {"logit_bias", [](auto& s) { (*s.mutable_logit_bias())[1] = 101; }},
      {"logit_bias", [](auto& s) { (*s.mutable_logit_bias())[4096] = 1; }},
      {"max_tokens", [](auto& s) { s.set_max_tokens(0); }},
      {"stop", [](auto& s) { s.add_stop(""); }},
      {"stop", [](auto& s) { s.add_stop(std::string(257, 'a')); }},
      {"stop_token_ids", [](auto& s) { s.add_stop_token_ids(-1); }},
      {"logprobs", [](auto& s) { s.set_logprobs(21); }},
  };
  for (const auto& [field, set] : cases) {
    v1::GenerateRequest request = ChatRequest(kQuestion);
    set(*request.mutable_sampling());
    EXPECT_TRUE(Refused(Generate(request), grpc::StatusCode::INVALID_ARGUMENT, field)) << field;
  }
}

TEST_F(ApiTest, MalformedInputsAreRefused) {
  EXPECT_TRUE(Refused(Generate({}), grpc::StatusCode::INVALID_ARGUMENT, "input"));
  v1::GenerateRequest request = GreedyRequest("", 1);
  request.mutable_token_ids();
  EXPECT_TRUE(Refused(Generate(request), grpc::StatusCode::INVALID_ARGUMENT, "token_ids"));
  request.mutable_token_ids()->add_ids(4096);
  EXPECT_TRUE(Refused(Generate(request), grpc::StatusCode::INVALID_ARGUMENT, "token_ids"));
}

TEST_F(ApiTest, TokenizeAndDetokenizeAreInverses) {
  grpc::ClientContext context;
  v1::TokenizeRequest request;
  request.set_prompt("A caf\xC3\xA9, a fox and 123 lanterns.");
  v1::TokenizeResponse tokens;
  ASSERT_TRUE(cluster_->client().inference().Tokenize(&context, request, &tokens).ok());
  EXPECT_EQ(tokens.token_ids(0), 4090);  // <|begin_of_text|>

  grpc::ClientContext back_context;
  v1::DetokenizeRequest back_request;
  *back_request.mutable_token_ids() = tokens.token_ids();
  v1::DetokenizeResponse text;
  ASSERT_TRUE(cluster_->client().inference().Detokenize(&back_context, back_request, &text).ok());
  EXPECT_EQ(text.text(), request.prompt());
}

TEST_F(ApiTest, ListModelsDescribesTheModelServed) {
  grpc::ClientContext context;
  v1::ListModelsResponse models;
  ASSERT_TRUE(cluster_->client().inference().ListModels(&context, {}, &models).ok());
  ASSERT_EQ(models.models_size(), 1);
  EXPECT_EQ(models.models(0).name(), "demo");
  EXPECT_EQ(models.models(0).vocab_size(), 4096);
  EXPECT_EQ(models.models(0).max_context_tokens(), 2048);
  EXPECT_TRUE(models.models(0).ready());
}

TEST(ApiToolsTest, ToolsCallsAndArgumentsReachTheModelsTemplate) {
  const TempFolder model;
  model.CopyFrom(SourceFolder() / "models/demo-chat");
  std::filesystem::create_directory(model.path() / "additional_chat_templates");
  model.Write("additional_chat_templates/tool_use.jinja",
              "{{ bos_token }}{% for t in tools %}{{ t|tojson }}{% endfor %}{{ style }}{% for m in messages %}"
              "<|{{ m.role }}|>{{ m.content or '' }}{{ m.tool_call_id }}{% for c in m.tool_calls or [] %}"
              "{{ c.function|tojson }}{% endfor %}<|end|>{% endfor %}<|assistant|>");
  ASSERT_OK_AND_ASSIGN(const auto cluster, Cluster::Start({.workers = {Prefill("p0"), Decode("d0")},
                                                           .worker_flags = {"--model=" + model.path().string()}}));
  v1::GenerateRequest request = ChatRequest("2+2?");
  v1::ChatInput& chat = *request.mutable_chat();
  v1::Tool& tool = *chat.add_tools();
  tool.set_name("add");
  tool.set_parameters_json_schema(R"({"type": "object"})");
  chat.set_template_arguments_json(R"({"style": "terse"})");
  v1::ChatMessage& asked = *chat.add_messages();
  asked.set_role("assistant");
  v1::ToolCall& call = *asked.add_tool_calls();
  call.set_name("add");
  call.set_arguments_json(R"({"b":2,"a":2})");
  v1::ChatMessage& answered = *chat.add_messages();
  answered.set_role("user");
  answered.set_content("4");
  answered.set_tool_call_id("c1");

  const Reply reply = cluster->client().Generate(request);
  EXPECT_TRUE(Succeeded(reply));
  grpc::ClientContext context;
  v1::TokenizeRequest tokenize;
  *tokenize.mutable_chat() = chat;
  v1::TokenizeResponse tokens;
  ASSERT_TRUE(cluster->client().inference().Tokenize(&context, tokenize, &tokens).ok());
  EXPECT_EQ(
      tokens.rendered(),
      R"(<|begin_of_text|>{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}terse)"
      R"(<|user|>2+2?<|end|><|assistant|>{"name": "add", "arguments": {"b": 2, "a": 2}}<|end|>)"
      R"(<|user|>4c1<|end|><|assistant|>)");
  EXPECT_EQ(reply.finish.usage().prompt_tokens(), static_cast<uint32_t>(tokens.token_ids_size()));

  call.set_arguments_json("{");
  EXPECT_TRUE(Refused(cluster->client().Generate(request), grpc::StatusCode::INVALID_ARGUMENT,
                      "chat.messages[1].tool_calls[0].arguments_json: not valid JSON"));
  EXPECT_OK(cluster->WaitIdle());
}

}  // namespace
}  // namespace baton::testing
