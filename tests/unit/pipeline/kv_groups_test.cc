// SPDX-License-Identifier: Apache-2.0
// A model whose layers are in several KV groups: every path of a page gives the bits of one group (I5), and no page is
// lost (I3).
#include <gtest/gtest.h>

#include <vector>

#include "pipeline.h"
#include "tests/grouped_model.h"

namespace baton::testing {
namespace {

NodeOptions InGroups(int rows) {
  NodeOptions options = TinyNode(rows * kModelGroups);
  options.kv_groups = true;
  options.schedule.token_budget = 64;
  options.schedule.chunk_tokens = 24;  // no whole pages
  return options;
}

// Half of the requests begin alike.
std::vector<Request> Requests(int count) {
  std::vector<Request> requests = MixedRequests(count, kTinyVocab, 60, 40);
  for (int i = 0; i < count; i += 2) {
    for (int t = 0; t < 40; ++t)
      requests[i].prompt.insert(requests[i].prompt.begin() + t, (t * 7 + t * t) % kTinyVocab);
  }
  return requests;
}

TEST(KvGroups, EveryPlacementGivesTheBitsOfOneGroup) {
  const std::vector<Request> requests = Requests(16);
  const std::vector<Answer> reference = AnswersAlone(requests);
  uint32_t cached = 0;
  for (const int rows : {256, 16}) {  // the second pool preempts
    PrefillNode prefill("prefill", InGroups(rows));
    DecodeNode decode("decode", InGroups(rows));
    for (int round = 0; round < 2; ++round) {
      const std::vector<Answer> answers = ServeAll({.prefill = &prefill, .decode = {&decode}}, requests);
      ExpectSame(answers, reference);
      for (const Answer& answer : answers) cached += answer.cached_tokens;
    }
    EXPECT_TRUE(prefill.BecomesEmpty());
    EXPECT_TRUE(decode.BecomesEmpty());
    DecodeNode both("both", InGroups(rows));
    ExpectSame(ServeAll({.decode = {&both}}, requests), reference);
    EXPECT_TRUE(both.BecomesEmpty());
  }
  EXPECT_GT(cached, 0u);
}

}  // namespace
}  // namespace baton::testing
