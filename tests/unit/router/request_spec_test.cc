// SPDX-License-Identifier: Apache-2.0
#include "router/request_spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "fake_tokenizer.h"
#include "tests/status_matchers.h"

namespace baton::router {
namespace {

using testing::Fails;

constexpr char kTemplate[] =
    "{{ bos_token }}{% for m in messages %}"
    "{% if m.role == 'bad' %}{{ raise_exception('unknown role') }}{% endif %}{{ m.content }}"
    "{% endfor %}{% if add_generation_prompt %}b{% endif %}";

ModelAssets Assets() {
  ModelAssets assets;
  assets.fingerprint = "f";
  assets.tokenizer = std::make_unique<FakeTokenizer>(std::vector<std::string>{"a", "b", "c", "</s>"});
  assets.templates = PromptTemplates(kTemplate, "");
  assets.end_tokens = {3};
  assets.special_tokens.bos = "c";
  return assets;
}

const ModelLimits kLimits{.vocab_size = 4, .max_context_tokens = 100, .max_sequence_tokens = 1000};

v1::GenerateRequest Prompt(const std::string& text) {
  v1::GenerateRequest request;
  request.set_prompt(text);
  return request;
}

// Returns the result of CheckRequest and then ResolveRequest.
absl::Status Check(const v1::GenerateRequest& request, const ModelLimits& limits = kLimits) {
  if (absl::Status status = CheckRequest(request); !status.ok()) return status;
  return ResolveRequest(request, Assets(), limits, {.seed = 1}).status();
}

absl::StatusOr<RequestSpec> Resolve(const v1::GenerateRequest& request, const ModelAssets& assets) {
  return ResolveRequest(request, assets, kLimits, {.seed = 1});
}

TEST(RequestSpecTest, ToolsCallsAndArgumentsReachTheTemplate) {
  ModelAssets assets = Assets();
  assets.templates = PromptTemplates(
      "{{ tools[0].function.name }}{{ messages[0].tool_calls[0].function.arguments.x }}{{ messages[1].tool_call_id }}"
      "{{ more }}",
      "");
  v1::GenerateRequest request;
  v1::ChatInput& chat = *request.mutable_chat();
  chat.add_tools()->set_name("a");
  v1::ChatMessage& call = *chat.add_messages();
  call.set_role("assistant");
  call.add_tool_calls()->set_name("a");
  call.mutable_tool_calls(0)->set_arguments_json(R"({"x": "b"})");
  chat.add_messages()->set_role("tool");
  chat.mutable_messages(1)->set_tool_call_id("ab");
  chat.set_template_arguments_json(R"({"more": "a"})");
  ASSERT_OK_AND_ASSIGN(const RequestSpec spec, Resolve(request, assets));
  EXPECT_EQ(spec.prompt, assets.tokenizer->Encode("ababa", false).value());
}

TEST(RequestSpecTest, EachFieldThatCannotBeServedIsRefusedByNameAndLimit) {
  struct Case {
    std::function<void(v1::GenerateRequest&)> set;
    std::vector<std::string> words;
  };
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  using R = v1::GenerateRequest;
  const auto pin = [](const std::string& decode, const std::string& migrate_to, uint32_t after) {
    return [=](R& r) {
      r.mutable_sampling()->set_max_tokens(5);
      r.mutable_pin()->set_decode_worker(decode);
      r.mutable_pin()->set_migrate_to(migrate_to);
      r.mutable_pin()->set_migrate_after_tokens(after);
    };
  };
  const std::vector<Case> cases = {
      {[](R& r) { r.set_tenant(std::string(65, 't')); }, {"tenant: 65 bytes", "at most 64"}},
      {[](R& r) { r.set_priority(static_cast<v1::Priority>(9)); }, {"priority: 9", "PRIORITY_BATCH"}},
      {[](R& r) { r.set_when_late(static_cast<v1::WhenLate>(9)); }, {"when_late: 9", "WHEN_LATE_SERVE"}},
      {pin("", "", 0), {"pin.decode_worker", "empty"}},
      {pin(std::string(257, 'd'), "", 0), {"pin.decode_worker", "257 bytes", "at most 256"}},
      {pin("d", "", 1), {"pin.migrate_to", "empty"}},
      {pin("d", "d", 1), {"pin.migrate_to", "d", "another worker"}},
      {pin("d", "e", 0), {"pin.migrate_after_tokens", "0", "at least 1"}},
      {pin("d", "e", 5), {"pin.migrate_after_tokens", "5", "less than max_tokens (5)"}},
      {[](R& r) { r.set_cache_salt(std::string(257, 's')); }, {"cache_salt: 257 bytes", "at most 256"}},
      {[](R& r) { r.set_adapter_id("l"); }, {"adapter_id", "not supported"}},
      {[](R& r) { r.set_n(2); }, {"n: 2", "1"}},
      {[](R& r) { r.set_prompt_logprobs(0); }, {"prompt_logprobs", "not supported"}},
      {[](R& r) { r.mutable_response_format(); }, {"response_format", "not supported"}},
      {[](R& r) { r.clear_prompt(); }, {"input", "prompt, chat, token_ids"}},
      {[](R& r) { r.set_prompt(""); }, {"prompt: no tokens"}},
      {[](R& r) { r.mutable_token_ids(); }, {"token_ids.ids: empty"}},
      {[](R& r) { r.mutable_token_ids()->add_ids(4); }, {"token_ids.ids[0]: 4", "0 to 3"}},
      {[](R& r) { r.mutable_token_ids()->add_ids(-1); }, {"token_ids.ids[0]: -1"}},
      {[](R& r) { r.mutable_chat(); }, {"chat.messages: empty"}},
      {[](R& r) { r.mutable_chat()->add_messages(); }, {"chat.messages[0].role: empty"}},
      {[](R& r) { r.mutable_chat()->add_messages()->set_role("bad"); }, {"chat: unknown role"}},
      {[](R& r) { r.mutable_chat()->add_messages()->add_content_parts(); }, {"chat.messages[0].content_parts"}},
      {[](R& r) {
         v1::ChatMessage& message = *r.mutable_chat()->add_messages();
         message.set_role("assistant");
         message.add_tool_calls()->set_name("f");
       },
       {"chat.messages[0].tool_calls[0].arguments_json: not valid JSON"}},
      {[](R& r) {
         r.mutable_chat()->add_messages()->set_role("user");
         r.mutable_chat()->add_tools()->set_name("f");
       },
       {"chat.tools", "does not look at tools"}},
      {[](R& r) { r.set_request_label(std::string(129, 'x')); }, {"request_label: 129 bytes", "128"}},
      {[](R& r) { r.mutable_sampling()->set_temperature(-0.1f); }, {"sampling.temperature: -0.1", "0 to 1e6"}},
      {[](R& r) { r.mutable_sampling()->set_temperature(kNan); }, {"sampling.temperature: nan"}},
      {[](R& r) { r.mutable_sampling()->set_temperature(kInf); }, {"sampling.temperature: inf"}},
      {[](R& r) { r.mutable_sampling()->set_temperature(1.1e6f); }, {"sampling.temperature: 1.1e+06"}},
      {[](R& r) { r.mutable_sampling()->set_top_k(-1); }, {"sampling.top_k: -1"}},
      {[](R& r) { r.mutable_sampling()->set_top_p(0); }, {"sampling.top_p: 0", "1e-9 to 1"}},
      {[](R& r) { r.mutable_sampling()->set_top_p(0.9e-9f); }, {"sampling.top_p: 9e-10"}},
      {[](R& r) { r.mutable_sampling()->set_top_p(kNan); }, {"sampling.top_p: nan"}},
      {[](R& r) { r.mutable_sampling()->set_top_p(1.5f); }, {"sampling.top_p: 1.5"}},
      {[](R& r) { r.mutable_sampling()->set_min_p(1.5f); }, {"sampling.min_p: 1.5"}},
      {[](R& r) { r.mutable_sampling()->set_repetition_penalty(0); }, {"sampling.repetition_penalty: 0"}},
      {[](R& r) { r.mutable_sampling()->set_repetition_penalty(0.9e-6f); },
       {"sampling.repetition_penalty: 9e-07", "1e-6 to 1e6"}},
      {[](R& r) { r.mutable_sampling()->set_repetition_penalty(1.1e6f); }, {"sampling.repetition_penalty: 1.1e+06"}},
      {[](R& r) { r.mutable_sampling()->set_presence_penalty(3); }, {"sampling.presence_penalty: 3", "-2 to 2"}},
      {[](R& r) { r.mutable_sampling()->set_frequency_penalty(-3); }, {"sampling.frequency_penalty: -3"}},
      {[](R& r) { (*r.mutable_sampling()->mutable_logit_bias())[1] = 101; }, {"sampling.logit_bias[1]: 101"}},
      {[](R& r) { (*r.mutable_sampling()->mutable_logit_bias())[9] = 1; }, {"sampling.logit_bias", "9", "0 to 3"}},
      {[](R& r) {
         for (int i = 0; i < 1025; ++i) (*r.mutable_sampling()->mutable_logit_bias())[i] = 1;
       },
       {"sampling.logit_bias: 1025 entries", "1024"}},
      {[](R& r) { r.mutable_sampling()->set_max_tokens(0); }, {"sampling.max_tokens: 0"}},
      {[](R& r) { r.mutable_sampling()->set_max_tokens(99); }, {"sampling.max_tokens: 99", "at most 98", "100"}},
      {[](R& r) {
         r.mutable_sampling()->set_max_tokens(5);
         r.mutable_sampling()->set_min_tokens(6);
       },
       {"sampling.min_tokens: 6", "5"}},
      {[](R& r) { r.mutable_sampling()->set_min_tokens(99); }, {"sampling.min_tokens: 99", "98"}},
      {[](R& r) { r.mutable_sampling()->add_stop(""); }, {"sampling.stop[0]: 0 bytes"}},
      {[](R& r) { r.mutable_sampling()->add_stop(std::string(257, 'x')); }, {"sampling.stop[0]: 257 bytes", "256"}},
      {[](R& r) {
         for (int i = 0; i < 17; ++i) r.mutable_sampling()->add_stop("x");
       },
       {"sampling.stop: 17 strings", "16"}},
      {[](R& r) { r.mutable_sampling()->add_stop_token_ids(4); }, {"sampling.stop_token_ids[0]: 4"}},
      {[](R& r) {
         for (int i = 0; i < 65; ++i) r.mutable_sampling()->add_stop_token_ids(1);
       },
       {"sampling.stop_token_ids: 65 ids", "64"}},
      {[](R& r) { r.mutable_sampling()->set_logprobs(21); }, {"sampling.logprobs: 21", "20"}},
  };
  for (const Case& one : cases) {
    v1::GenerateRequest request = Prompt("ab");
    one.set(request);
    const absl::Status status = Check(request);
    for (const std::string& words : one.words) {
      EXPECT_TRUE(Fails(status, absl::StatusCode::kInvalidArgument, words)) << request.ShortDebugString();
    }
  }
}

TEST(RequestSpecTest, OneChoiceMayBeAskedFor) {
  v1::GenerateRequest request = Prompt("ab");
  request.set_n(1);
  EXPECT_OK(Check(request));
}

TEST(RequestSpecTest, ThePromptMustLeaveRoomForAToken) {
  EXPECT_OK(Check(Prompt(std::string(99, 'a'))));
  EXPECT_TRUE(Fails(Check(Prompt(std::string(100, 'a'))), absl::StatusCode::kInvalidArgument,
                    "prompt: 100 tokens; expected fewer than 100 (the model's context)"));
  ModelLimits small_pool = kLimits;
  small_pool.max_sequence_tokens = 50;
  EXPECT_TRUE(Fails(Check(Prompt(std::string(60, 'a')), small_pool), absl::StatusCode::kInvalidArgument,
                    "fewer than 50 (the capacity of the workers' KV pages)"));
  ModelLimits short_prompts = kLimits;
  short_prompts.max_prompt_tokens = 10;
  EXPECT_TRUE(Fails(Check(Prompt(std::string(11, 'a')), short_prompts), absl::StatusCode::kInvalidArgument,
                    "prompt: 11 tokens; expected at most 10 (max-prompt-tokens)"));
}

TEST(RequestSpecTest, UnsetFieldsTakeTheModelsDefaultsThenOurs) {
  ModelAssets assets = Assets();
  ASSERT_OK_AND_ASSIGN(const RequestSpec plain, Resolve(Prompt("ab"), assets));
  EXPECT_EQ(plain.prompt, (std::vector<TokenId>{0, 1}));
  EXPECT_EQ(plain.sampling.temperature(), 1);
  EXPECT_EQ(plain.sampling.top_p(), 1);
  EXPECT_EQ(plain.sampling.repetition_penalty(), 1);
  EXPECT_EQ(plain.sampling.max_tokens(), 98u) << "what fits the context";
  EXPECT_EQ(plain.sampling.seed(), 1u) << "the drawn one";
  EXPECT_FALSE(plain.sampling.has_logprobs());
  EXPECT_TRUE(plain.skip_special_tokens);

  assets.generation.temperature = 0.5;
  assets.generation.top_k = 40;
  assets.generation.top_p = 0.0;
  ASSERT_OK_AND_ASSIGN(const RequestSpec model, Resolve(Prompt("ab"), assets));
  EXPECT_EQ(model.sampling.temperature(), 0.5f);
  EXPECT_EQ(model.sampling.top_k(), 40);
  EXPECT_EQ(model.sampling.top_p(), 1) << "0 in a file means nothing is cut";

  assets.generation.do_sample = false;
  ASSERT_OK_AND_ASSIGN(const RequestSpec greedy, Resolve(Prompt("ab"), assets));
  EXPECT_EQ(greedy.sampling.temperature(), 0);

  v1::GenerateRequest request = Prompt("ab");
  request.mutable_sampling()->set_temperature(2);
  request.mutable_sampling()->set_top_k(0);
  request.mutable_sampling()->set_seed(9);
  request.mutable_sampling()->set_logprobs(0);
  ASSERT_OK_AND_ASSIGN(const RequestSpec own, Resolve(request, assets));
  EXPECT_EQ(own.sampling.temperature(), 2);
  EXPECT_EQ(own.sampling.top_k(), 0);
  EXPECT_EQ(own.sampling.seed(), 9u);
  EXPECT_TRUE(own.sampling.has_logprobs());
}

TEST(RequestSpecTest, TheLimitsThemselvesAreTaken) {
  for (const bool least : {true, false}) {
    v1::GenerateRequest request = Prompt("ab");
    v1::SamplingParams& sampling = *request.mutable_sampling();
    sampling.set_temperature(least ? 0 : 1e6f);
    sampling.set_top_p(least ? 1e-9f : 1);
    sampling.set_min_p(least ? 0 : 1);
    sampling.set_repetition_penalty(least ? 1e-6f : 1e6f);
    sampling.set_presence_penalty(least ? -2 : 2);
    sampling.set_frequency_penalty(least ? -2 : 2);
    EXPECT_OK(Check(request));
  }
}

TEST(RequestSpecTest, StopTokensAreTheClientsAndUnlessIgnoredTheModels) {
  const ModelAssets assets = Assets();
  v1::GenerateRequest request = Prompt("ab");
  request.mutable_sampling()->add_stop_token_ids(2);
  request.mutable_sampling()->add_stop_token_ids(2);
  const auto stops = [&] {
    const absl::StatusOr<RequestSpec> spec = Resolve(request, assets);
    const auto& ids = spec->sampling.stop_token_ids();
    return std::vector<TokenId>(ids.begin(), ids.end());
  };
  EXPECT_EQ(stops(), (std::vector<TokenId>{2, 3}));
  request.mutable_sampling()->set_ignore_eos(true);
  EXPECT_EQ(stops(), (std::vector<TokenId>{2}));
}

TEST(RequestSpecTest, ChatIsRenderedWithTheGenerationPrompt) {
  const ModelAssets assets = Assets();
  v1::GenerateRequest request;
  v1::ChatMessage& message = *request.mutable_chat()->add_messages();
  message.set_role("user");
  message.set_content("a");
  ASSERT_OK_AND_ASSIGN(const RequestSpec spec, Resolve(request, assets));
  EXPECT_EQ(spec.prompt, (std::vector<TokenId>{2, 0, 1})) << "bos, content, generation prompt";
}

TEST(RequestSpecTest, AModelWithoutATemplateOnlyLacksChat) {
  ModelAssets assets = Assets();
  assets.templates = PromptTemplates();
  v1::GenerateRequest request;
  request.mutable_chat()->add_messages()->set_role("user");
  EXPECT_TRUE(
      Fails(Resolve(request, assets), absl::StatusCode::kInvalidArgument, "chat: the model has no chat template"));
  EXPECT_OK(Resolve(Prompt("ab"), assets));
}

TEST(RequestSpecTest, ObjectivesComeFromTheRequestOrTheDefaults) {
  v1::GenerateRequest request;
  request.mutable_token_ids()->add_ids(1);
  const RequestDefaults defaults = {.objectives = {absl::Seconds(2), absl::Milliseconds(20)}};
  const auto resolve = [&] { return ResolveRequest(request, Assets(), kLimits, defaults)->objectives; };
  EXPECT_EQ(resolve().ttft, absl::Seconds(2));
  EXPECT_EQ(resolve().tpot, absl::Milliseconds(20));
  request.set_ttft_slo_seconds(0);
  request.set_tpot_slo_seconds(0.5);
  EXPECT_EQ(resolve().ttft, absl::ZeroDuration()) << "none";
  EXPECT_EQ(resolve().tpot, absl::Milliseconds(500));
  for (const double wrong : {-1.0, 3601.0, std::numeric_limits<double>::quiet_NaN()}) {
    request.set_tpot_slo_seconds(wrong);
    EXPECT_TRUE(Fails(CheckRequest(request), absl::StatusCode::kInvalidArgument, "tpot_slo_seconds")) << wrong;
  }
}

TEST(RequestSpecTest, TheDefaultObjectivesAreThoseOfInteractiveRequests) {
  v1::GenerateRequest request;
  request.mutable_token_ids()->add_ids(1);
  const RequestDefaults defaults = {.objectives = {absl::Seconds(2), absl::Milliseconds(20)},
                                    .when_late = WhenLate::kServe};
  const auto resolve = [&] { return *ResolveRequest(request, Assets(), kLimits, defaults); };
  EXPECT_FALSE(resolve().is_batch);
  EXPECT_EQ(resolve().when_late, WhenLate::kServe);
  request.set_when_late(v1::WHEN_LATE_REFUSE);
  EXPECT_EQ(resolve().when_late, WhenLate::kRefuse);
  request.set_priority(v1::PRIORITY_INTERACTIVE);
  EXPECT_TRUE(resolve().objectives.any());
  request.set_priority(v1::PRIORITY_BATCH);
  EXPECT_TRUE(resolve().is_batch);
  EXPECT_FALSE(resolve().objectives.any());
  request.set_ttft_slo_seconds(3);
  EXPECT_EQ(resolve().objectives.ttft, absl::Seconds(3)) << "its own";
}

}  // namespace
}  // namespace baton::router
