// SPDX-License-Identifier: Apache-2.0
// Prompts go to workers that cache their prefixes. Decode workers compute prompts if the first token then comes sooner.
#include "cluster_test.h"
#include "common/steady_time.h"
#include "golden.h"

namespace baton::testing {
namespace {

// Some 300 tokens, with an end of its own.
std::string LongPrompt(const std::string& end) {
  std::string prompt;
  for (int i = 0; i < 60; ++i) prompt += "The " + std::to_string(i) + "th day was like the one before. ";
  return prompt + end;
}

double Expected(Cluster& cluster) {
  const absl::StatusOr<MetricsPage> page = cluster.Metrics("router");
  return page.ok() ? page->Sum("baton_expected_cached_tokens_total") : 0;
}

TEST(PlacementTest, APromptGoesToTheWorkerThatKeepsItsBeginning) {
  ASSERT_OK_AND_ASSIGN(const auto cluster,
                       Cluster::Start({.workers = {Prefill("p0"), Prefill("p1"), Decode("d0"), Decode("d1")}}));
  const Reply first = cluster->client().Generate(GreedyRequest(LongPrompt("Then"), 4));
  ASSERT_TRUE(Succeeded(first));
  // The router hears of the pages a moment later.
  const SteadyTime give_up = SteadyTime::Now() + kPatience;
  while (Expected(*cluster) == 0 && SteadyTime::Now() < give_up) {
    ASSERT_TRUE(Succeeded(cluster->client().Generate(GreedyRequest(LongPrompt("Then"), 1))));
  }
  // From now on at least one of the two workers has the pages, and must get the prompt.
  for (const char* end : {"Then", "But", "Once", "Now"}) {
    const Reply reply = cluster->client().Generate(GreedyRequest(LongPrompt(end), 4));
    ASSERT_TRUE(Succeeded(reply));
    EXPECT_GT(reply.finish.usage().cached_prompt_tokens(), 200u) << end;
  }
  // Restarted workers keep nothing, and the router knows.
  for (const char* worker : {"p0", "p1"}) ASSERT_OK(cluster->Restart(worker));
  ASSERT_OK(cluster->WaitReady());
  const double expected_before = Expected(*cluster);
  const Reply anew = cluster->client().Generate(GreedyRequest(LongPrompt("Then"), 4));
  ASSERT_TRUE(Succeeded(anew));
  EXPECT_EQ(anew.finish.usage().cached_prompt_tokens(), 0u);
  EXPECT_EQ(Expected(*cluster), expected_before) << "the router expects nothing of them";
  EXPECT_OK(cluster->WaitIdle());
}

// Runs `requests` prompts at once on a prefill worker and a worker of role both.
void ExpectPrefills(const std::string& limit, bool local_too) {
  ASSERT_OK_AND_ASSIGN(const auto cluster, Cluster::Start({.workers = {Prefill("p0"), Both("b0")},
                                                           .router_flags = {"--max-local-prefill-tokens=" + limit}}));
  std::vector<v1::GenerateRequest> requests;
  for (int i = 0; i < 12; ++i) requests.push_back(GreedyRequest(std::to_string(i) + ". " + LongPrompt("Then"), 8));
  const std::vector<Reply> together = cluster->client().GenerateAll(requests);
  int local = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    ASSERT_TRUE(Succeeded(together[i]));
    if (together[i].finish.attempts(0).prefill_worker() != "p0") ++local;
    const Reply alone = cluster->client().Generate(requests[i]);
    ASSERT_TRUE(Succeeded(alone));
    EXPECT_EQ(together[i].answer, alone.answer);
  }
  EXPECT_EQ(local > 0, local_too) << local;
  EXPECT_LT(local, 12);
  EXPECT_OK(cluster->WaitIdle());
}

TEST(PlacementTest, ADecodeWorkerTakesPromptsThatWouldWaitElsewhere) { ExpectPrefills("1000", true); }

TEST(PlacementTest, ADecodeWorkerIsSparedLongPrompts) { ExpectPrefills("100", false); }

}  // namespace
}  // namespace baton::testing
