// SPDX-License-Identifier: Apache-2.0
// The pairs and requests of `verify` and `doctor`, and how answers compare.
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "cli/pairs/answer.h"
#include "cli/pairs/plan.h"
#include "cli/pairs/prompts.h"

namespace baton::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

v1::WorkerInfo& AddWorker(v1::GetStatusResponse& status, const std::string& id, const std::string& role) {
  v1::WorkerInfo& worker = *status.add_workers();
  worker.set_worker_id(id);
  worker.set_role(role);
  worker.set_model("m");
  worker.set_numerics_id("n");
  worker.set_state("serving");
  return worker;
}

std::vector<std::string> Names(const std::vector<WorkerPair>& pairs) {
  std::vector<std::string> names;
  for (const WorkerPair& pair : pairs) names.push_back(pair.name());
  return names;
}

TEST(PlanTest, HasAllPairsOfServingWorkersAndAllMovesBetweenDecodeWorkers) {
  v1::GetStatusResponse status;
  AddWorker(status, "p0", "prefill");
  AddWorker(status, "p1", "prefill").set_state("lost");
  AddWorker(status, "d0", "decode");
  AddWorker(status, "d1", "decode").set_numerics_id("n2");
  AddWorker(status, "b0", "both");
  AddWorker(status, "d2", "decode");
  v1::PairInfo& mismatch = *status.add_pairs();  // the tokenizer files differ
  mismatch.set_prefill_worker("p0");
  mismatch.set_decode_worker("d2");
  mismatch.set_state("mismatch");
  v1::ListModelsResponse models;
  v1::ModelInfo& model = *models.add_models();
  model.set_name("m");
  model.set_numerics_id("n");
  model.set_vocab_size(99);
  model.set_max_context_tokens(77);
  const std::vector<WorkerGroup> groups = MakePlan(status, models, {.max_pairs = 10});
  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_THAT(Names(groups[0].pairs), ElementsAre("p0+b0", "p0+d0", "b0"));
  EXPECT_EQ(groups[0].vocab_size, 99u);
  EXPECT_EQ(groups[0].max_context_tokens, 77u);
  std::vector<std::string> moves;
  for (const PlannedMigration& migration : groups[0].migrations) moves.push_back(migration.name());
  EXPECT_THAT(moves, SizeIs(4)) << "nothing begins on d2";
  EXPECT_THAT(moves, ::testing::Contains("p0+d0>b0"));
  EXPECT_THAT(moves, ::testing::Contains("p0+d0>d2"));
  EXPECT_EQ(groups[1].numerics_id, "n2");
  EXPECT_THAT(groups[1].pairs, IsEmpty());
  EXPECT_THAT(MakePlan(status, models, {.model = "other", .max_pairs = 10}), IsEmpty());
}

TEST(PlanTest, AChoiceCoversTheWorkersFirstAndDependsOnTheSeed) {
  std::vector<WorkerPair> all;
  for (int p = 0; p < 8; ++p) {
    for (int d = 0; d < 8; ++d) all.push_back({absl::StrCat("p", p), absl::StrCat("d", d)});
  }
  std::set<std::vector<std::string>> choices;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const std::vector<WorkerPair> chosen = Choose(all, 16, seed);
    ASSERT_THAT(chosen, SizeIs(16));
    std::set<std::string> workers;
    for (const WorkerPair& pair : chosen) workers.insert({pair.prefill, pair.decode});
    EXPECT_THAT(workers, SizeIs(16)) << seed;
    choices.insert(Names(chosen));
  }
  EXPECT_THAT(choices, SizeIs(10));
  EXPECT_EQ(Choose(all, 64, 1), all);
}

TEST(PromptsTest, AreReproducibleDifferentAndFitTheContext) {
  const WorkerGroup group{.model = "m", .vocab_size = 1000, .max_context_tokens = 100};
  const auto prompts = MakePrompts(group, {.prompts = 10, .prompt_tokens = 96, .output_tokens = 80, .seed = 3});
  ASSERT_THAT(prompts, SizeIs(10));
  std::set<std::string> different;
  bool with_temperature = false;
  bool with_penalty = false;
  bool with_bias = false;
  bool with_end = false;
  int sharing = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const v1::SamplingParams& sampling = prompts[i].sampling();
    EXPECT_EQ(sampling.logprobs(), 5u);
    EXPECT_LE(prompts[i].token_ids().ids_size() + static_cast<int>(sampling.max_tokens()), 100);
    for (const int32_t id : prompts[i].token_ids().ids()) EXPECT_TRUE(id >= 0 && id < 1000);
    different.insert(prompts[i].SerializeAsString());
    with_temperature |= sampling.temperature() > 0;
    with_penalty |= sampling.repetition_penalty() > 1;
    with_bias |= !sampling.logit_bias().empty();
    with_end |= !sampling.ignore_eos();
    if (i == 0) continue;
    const auto& ids = prompts[i].token_ids().ids();
    const auto& before = prompts[i - 1].token_ids().ids();
    if (std::equal(ids.begin(), ids.begin() + ids.size() / 2, before.begin())) ++sharing;
  }
  EXPECT_THAT(different, SizeIs(10));
  EXPECT_TRUE(with_temperature && with_penalty && with_bias && with_end);
  EXPECT_EQ(sharing, 5);
  const auto again = MakePrompts(group, {.prompts = 10, .prompt_tokens = 96, .output_tokens = 80, .seed = 3});
  for (size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(prompts[i], again[i])) << i;
  }
  EXPECT_NE(FreshSalt(), FreshSalt());
}

ComparedAnswer SomeAnswer() {
  v1::Chunk chunk;
  chunk.set_text("abc");
  for (int i = 0; i < 3; ++i) {
    chunk.add_token_ids(10 + i);
    v1::TokenLogprobs& logprobs = *chunk.add_logprobs();
    logprobs.mutable_chosen()->set_token_id(10 + i);
    logprobs.mutable_chosen()->set_logprob(-0.5F);
    *logprobs.add_top() = logprobs.chosen();
  }
  v1::Finish finish;
  finish.set_reason(v1::FINISH_REASON_STOP);
  finish.set_stop_token_id(12);
  ComparedAnswer answer;
  answer.Add(chunk);
  answer.Add(finish);
  return answer;
}

TEST(AnswerTest, TheFirstDifferenceIsNamedWhateverItsKind) {
  EXPECT_FALSE(FirstDifference(SomeAnswer(), SomeAnswer()));
  struct Case {
    std::function<void(ComparedAnswer&)> change;
    const char* text;
  };
  const Case cases[] = {
      {[](ComparedAnswer& a) { a.token_ids[1] = 99; }, "output token 1 is 99, expected 11"},
      {[](ComparedAnswer& a) { a.logprobs[2][1].bits += 1; },
       "the logprob at output token 2 is 12 -0.50000006 (bits bf000001), expected 12 -0.5 (bits bf000000)"},
      {[](ComparedAnswer& a) { a.logprobs[0][1].token_id = 7; },
       "the logprob at output token 0 is 7 -0.5 (bits bf000000), expected 10 -0.5 (bits bf000000)"},
      {[](ComparedAnswer& a) { a.logprobs[2].pop_back(); },
       "the logprob at output token 2 is none, expected 12 -0.5 (bits bf000000)"},
      {[](ComparedAnswer& a) {
         a.token_ids.pop_back();
         a.logprobs.pop_back();
       },
       "the number of output tokens is 2, expected 3"},
      {[](ComparedAnswer& a) { a.text = "abX"; }, "the text is \"abX\", expected \"abc\""},
      {[](ComparedAnswer& a) { a.reason = v1::FINISH_REASON_LENGTH; },
       "the end is FINISH_REASON_LENGTH by token 12, expected FINISH_REASON_STOP by token 12"},
      {[](ComparedAnswer& a) { a.stopped_by = "token 9"; },
       "the end is FINISH_REASON_STOP by token 9, expected FINISH_REASON_STOP by token 12"},
  };
  for (const Case& c : cases) {
    ComparedAnswer changed = SomeAnswer();
    c.change(changed);
    const auto difference = FirstDifference(SomeAnswer(), changed);
    ASSERT_TRUE(difference) << c.text;
    EXPECT_EQ(ToText(*difference), c.text);
  }
}

// Equal numbers with other bits, and numbers that equal nothing.
TEST(AnswerTest, LogprobsCompareByTheirBits) {
  const auto with = [](float logprob) {
    v1::Chunk chunk;
    chunk.add_token_ids(1);
    chunk.add_logprobs()->mutable_chosen()->set_logprob(logprob);
    ComparedAnswer answer;
    answer.Add(chunk);
    return answer;
  };
  EXPECT_TRUE(FirstDifference(with(0.0F), with(-0.0F)));
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(FirstDifference(with(kNan), with(kNan)));
}

}  // namespace
}  // namespace baton::testing
