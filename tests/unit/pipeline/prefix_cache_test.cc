// SPDX-License-Identifier: Apache-2.0
// Pages shared between requests: computed once, handed over once, and never a different answer (I5).
#include <gtest/gtest.h>

#include <vector>

#include "pipeline.h"

namespace baton::testing {
namespace {

constexpr int kFamilies = 3;
constexpr int kPageTokens = 16;
constexpr int kSharedTokens = 40;  // two whole pages and a half

// Chunks that are no whole pages.
NodeOptions SmallSteps(int pages = 256) {
  NodeOptions options = TinyNode(pages);
  options.schedule.token_budget = 64;
  options.schedule.chunk_tokens = 24;
  return options;
}

// Request i begins as all others of family i % kFamilies do.
std::vector<Request> FamilyRequests(int count) {
  std::vector<Request> requests = MixedRequests(count, kTinyVocab, 30, 30);
  for (int i = 0; i < count; ++i) {
    std::vector<TokenId> prompt(kSharedTokens, 1 + i % kFamilies);
    for (int t = 0; t < kSharedTokens; ++t) prompt[t] = (prompt[t] * 7 + t * t) % kTinyVocab;
    prompt.insert(prompt.end(), requests[i].prompt.begin(), requests[i].prompt.end());
    requests[i].prompt = prompt;
  }
  return requests;
}

TEST(PrefixCache, OneByOneABeginningIsComputedAndHandedOverOnce) {
  const std::vector<Request> requests = FamilyRequests(12);
  const std::vector<Answer> reference = AnswersAlone(requests);
  PrefillNode prefill("prefill", SmallSteps());
  DecodeNode decode("decode", SmallSteps());
  std::vector<Answer> answers;
  for (const Request& request : requests) {
    answers.push_back(Serve({.prefill = &prefill, .decode = {&decode}}, request));
  }
  ExpectSame(answers, reference);
  const uint64_t page_bytes = decode.pool().layout().page_bytes();
  for (size_t i = 0; i < answers.size(); ++i) {
    const uint64_t pages = (requests[i].prompt.size() + kPageTokens - 1) / kPageTokens;
    const uint64_t shared = i < kFamilies ? 0 : kSharedTokens / kPageTokens;
    EXPECT_EQ(answers[i].cached_tokens, shared * kPageTokens) << "request " << i;
    if (answers[i].tokens.size() > 1) {
      EXPECT_EQ(answers[i].kv_bytes, (pages - shared) * page_bytes) << "request " << i;
    }
  }
  EXPECT_TRUE(prefill.BecomesEmpty());
  EXPECT_TRUE(decode.BecomesEmpty());
}

TEST(PrefixCache, AllAtOnceABeginningIsComputedOnce) {
  std::vector<Request> requests(6);
  for (size_t i = 0; i < requests.size(); ++i) {
    for (int t = 0; t < 150; ++t) requests[i].prompt.push_back((t * 7 + t * t) % kTinyVocab);
    requests[i].prompt.push_back(static_cast<TokenId>(i));
    requests[i].sampling.max_tokens = 8;
  }
  const std::vector<Answer> reference = AnswersAlone(requests);
  PrefillNode prefill("prefill", SmallSteps());
  DecodeNode decode("decode", SmallSteps());
  DecodeNode both("both", SmallSteps());
  for (const Placement& placement :
       {Placement{.prefill = &prefill, .decode = {&decode}}, Placement{.decode = {&both}}}) {
    const std::vector<Answer> answers = ServeAll(placement, requests);
    ExpectSame(answers, reference);
    uint32_t cached = 0;
    for (const Answer& answer : answers) cached += answer.cached_tokens;
    EXPECT_EQ(cached, 5u * (150 / kPageTokens * kPageTokens)) << "all but one found it";
  }
}

TEST(PrefixCache, AllAtOnceAndWithFewPagesTheAnswersAreTheSame) {
  const std::vector<Request> requests = FamilyRequests(30);
  const std::vector<Answer> reference = AnswersAlone(requests);
  for (const int pages : {256, 20}) {
    PrefillNode prefill("prefill", SmallSteps(pages));
    DecodeNode decode("decode", SmallSteps(pages));
    const Placement apart = {.prefill = &prefill, .decode = {&decode}};
    ExpectSame(ServeAll(apart, requests), reference);
    ExpectSame(ServeAll(apart, requests), reference);
    EXPECT_TRUE(prefill.BecomesEmpty());
    EXPECT_TRUE(decode.BecomesEmpty());
    DecodeNode both("both", SmallSteps(pages));
    ExpectSame(ServeAll({.decode = {&both}}, requests), reference);
    ExpectSame(ServeAll({.decode = {&both}}, requests), reference);
    EXPECT_TRUE(both.BecomesEmpty());
  }
}

TEST(PrefixCache, TheNextTurnOfAChatFindsTheAnswerToo) {
  Request turn;
  for (int t = 0; t < 20; ++t) turn.prompt.push_back((t * 5 + 3) % kTinyVocab);
  turn.sampling.max_tokens = 45;
  turn.sampling.temperature = 0;
  DecodeNode node("both", SmallSteps());
  const Answer first = Serve({.decode = {&node}}, turn);
  ASSERT_EQ(first.tokens.size(), 45u);
  turn.prompt.insert(turn.prompt.end(), first.tokens.begin(), first.tokens.end());
  turn.prompt.insert(turn.prompt.end(), {7, 8, 9});
  const Answer second = Serve({.decode = {&node}}, turn);
  EXPECT_EQ(second.cached_tokens, 64u) << "20 + 45 tokens, of which the last has no KV: four pages";
  ExpectSame({second}, AnswersAlone({turn}));
}

TEST(PrefixCache, APromptThatIsCachedWholeIsComputedFromItsLastPageOn) {
  Request request;
  request.prompt.assign(size_t{4} * kPageTokens, 5);
  request.sampling.max_tokens = 3;
  PrefillNode prefill("prefill", SmallSteps());
  DecodeNode decode("decode", SmallSteps());
  const Placement apart = {.prefill = &prefill, .decode = {&decode}};
  const Answer first = Serve(apart, request);
  const Answer second = Serve(apart, request);
  ExpectSame({first, second}, {first, first});
  EXPECT_EQ(second.cached_tokens, 3u * kPageTokens);
  EXPECT_EQ(second.kv_bytes, 0u) << "the decode worker has all of it";
}

TEST(PrefixCache, WhatOnlyOneSideHasIsComputedOrHandedOver) {
  Request request;
  for (int t = 0; t < 70; ++t) request.prompt.push_back((t * 3 + 1) % kTinyVocab);
  request.sampling.max_tokens = 3;
  PrefillNode prefill("prefill", SmallSteps());
  DecodeNode decode("decode", SmallSteps());
  const Answer first = Serve({.prefill = &prefill, .decode = {&decode}}, request);
  PrefillNode other_prefill("prefill-2", SmallSteps());
  const Answer computed = Serve({.prefill = &other_prefill, .decode = {&decode}}, request);
  EXPECT_EQ(computed.cached_tokens, 0u);
  EXPECT_EQ(computed.kv_bytes, decode.pool().layout().page_bytes()) << "the last page, which is not full";
  DecodeNode other_decode("decode-2", SmallSteps());
  const Answer handed_over = Serve({.prefill = &prefill, .decode = {&other_decode}}, request);
  EXPECT_EQ(handed_over.cached_tokens, 64u);
  EXPECT_EQ(handed_over.kv_bytes, first.kv_bytes);
  ExpectSame({computed, handed_over}, {first, first});
}

}  // namespace
}  // namespace baton::testing
