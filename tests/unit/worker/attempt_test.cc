// SPDX-License-Identifier: Apache-2.0
#include "worker/attempt.h"

#include <functional>
#include <limits>
#include <string>

#include "baton/v1/worker.pb.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using testing::kInvalid;

using ::baton::testing::Fails;

AttemptLimits Limits() {
  AttemptLimits limits;
  limits.model = "demo";
  limits.numerics_id = "n1";
  limits.vocab_size = 100;
  limits.max_context_tokens = 64;
  limits.pool_tokens = 48;
  return limits;
}

v1::AttemptHeader ValidHeader() {
  v1::AttemptHeader header;
  header.set_protocol(v1::WORKER_PROTOCOL_CURRENT);
  header.set_request_id(RequestId{1, 2}.ToBytes());
  header.set_attempt(3);
  header.set_model("demo");
  header.set_numerics_id("n1");
  header.set_due_unix_nanos(5'000'000'000);
  for (int token : {7, 8, 9}) header.add_prompt_token_ids(token);
  header.add_prior_output_token_ids(11);
  v1::EngineSampling& sampling = *header.mutable_sampling();
  sampling.set_temperature(0.5f);
  sampling.set_top_p(1);
  sampling.set_repetition_penalty(1);
  sampling.set_max_tokens(10);
  sampling.add_stop_token_ids(9);
  sampling.add_stop_token_ids(2);
  (*sampling.mutable_logit_bias())[5] = 1.5f;
  return header;
}

TEST(ParseAttempt, TakesEveryFieldOver) {
  ASSERT_OK_AND_ASSIGN(const Attempt attempt, ParseAttempt(ValidHeader(), Limits()));
  EXPECT_EQ(attempt.key, (AttemptKey{{1, 2}, 3}));
  EXPECT_EQ(attempt.due, absl::FromUnixSeconds(5));
  EXPECT_EQ(attempt.prompt, (std::vector<TokenId>{7, 8, 9}));
  EXPECT_EQ(attempt.prior_output, (std::vector<TokenId>{11}));
  EXPECT_EQ(attempt.context_tokens(), 4);
  EXPECT_EQ(attempt.sampling.stop_token_ids, (std::vector<TokenId>{2, 9}));  // sorted
  EXPECT_EQ(attempt.sampling.logit_bias.size(), 1u);
  EXPECT_FALSE(attempt.sampling.logprobs.has_value());
  EXPECT_EQ(attempt.priority, Priority::kInteractive);
  EXPECT_EQ(attempt.first_token_within, absl::InfiniteDuration());
}

TEST(ParseAttempt, TakesPriorityAndTheTimeForTheFirstTokenOver) {
  v1::AttemptHeader header = ValidHeader();
  header.set_priority(v1::PRIORITY_BATCH);
  header.set_first_token_within_seconds(0.5);
  header.set_tenant("t");
  ASSERT_OK_AND_ASSIGN(const Attempt attempt, ParseAttempt(header, Limits()));
  EXPECT_EQ(attempt.priority, Priority::kBatch);
  EXPECT_EQ(attempt.first_token_within, absl::Milliseconds(500));
  EXPECT_EQ(attempt.tenant, "t");
}

struct Refusal {
  std::string name;
  std::function<void(v1::AttemptHeader&)> spoil;
  absl::StatusCode code;
  std::string says;
};

class ParseAttemptRefuses : public ::testing::TestWithParam<Refusal> {};

TEST_P(ParseAttemptRefuses, NamingTheFieldAndTheLimit) {
  v1::AttemptHeader header = ValidHeader();
  GetParam().spoil(header);
  EXPECT_TRUE(Fails(ParseAttempt(header, Limits()), GetParam().code, GetParam().says));
}

constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;
using H = v1::AttemptHeader;

INSTANTIATE_TEST_SUITE_P(
    Fields, ParseAttemptRefuses,
    ::testing::Values(
        Refusal{"protocol", [](H& h) { h.set_protocol(99); }, kPrecondition, "protocol is 99"},
        Refusal{"model", [](H& h) { h.set_model("other"); }, kPrecondition, "this worker serves \"demo\""},
        Refusal{"numerics", [](H& h) { h.set_numerics_id("n2"); }, kPrecondition, "numerics_id is \"n2\""},
        Refusal{"id", [](H& h) { h.set_request_id("short"); }, kInvalid, "expected 16"},
        Refusal{"attempt", [](H& h) { h.set_attempt(0); }, kInvalid, "attempt is 0"},
        Refusal{"no_prompt", [](H& h) { h.clear_prompt_token_ids(); }, kInvalid, "prompt_token_ids size is 0"},
        Refusal{"token", [](H& h) { h.set_prompt_token_ids(1, 100); }, kInvalid, "prompt_token_ids is 100"},
        Refusal{"negative", [](H& h) { h.set_prior_output_token_ids(0, -1); }, kInvalid,
                "prior_output_token_ids is -1"},
        Refusal{"no_max", [](H& h) { h.mutable_sampling()->set_max_tokens(0); }, kInvalid, "sampling.max_tokens is 0"},
        Refusal{"done", [](H& h) { h.mutable_sampling()->set_max_tokens(1); }, kInvalid, "less than max_tokens"},
        Refusal{"context", [](H& h) { h.mutable_sampling()->set_max_tokens(4'000'000'000u); }, kInvalid,
                "the model's context, 64"},
        Refusal{"pool", [](H& h) { h.mutable_sampling()->set_max_tokens(46); }, kInvalid, "KV pool, 48"},
        Refusal{"nan", [](H& h) { h.mutable_sampling()->set_temperature(std::numeric_limits<float>::quiet_NaN()); },
                kInvalid, "sampling.temperature"},
        Refusal{"top_p", [](H& h) { h.mutable_sampling()->set_top_p(0); }, kInvalid, "sampling.top_p"},
        Refusal{"top_k", [](H& h) { h.mutable_sampling()->set_top_k(-1); }, kInvalid, "sampling.top_k"},
        Refusal{"repetition", [](H& h) { h.mutable_sampling()->set_repetition_penalty(0); }, kInvalid,
                "sampling.repetition_penalty"},
        Refusal{"bias", [](H& h) { (*h.mutable_sampling()->mutable_logit_bias())[100] = 1; }, kInvalid,
                "sampling.logit_bias is 100"},
        Refusal{"stop", [](H& h) { h.mutable_sampling()->add_stop_token_ids(-5); }, kInvalid,
                "sampling.stop_token_ids is -5"},
        Refusal{"logprobs", [](H& h) { h.mutable_sampling()->set_logprobs(21); }, kInvalid, "sampling.logprobs is 21"},
        Refusal{"root", [](H& h) { h.set_page_hash_root("abc"); }, kInvalid, "page_hash_root length is 3"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace baton
