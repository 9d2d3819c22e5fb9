// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <ostream>
#include <string>

#include "absl/base/config.h"
#include "explorer.h"

namespace baton::handoff {
namespace {

// Far more than there are: a machine whose states grow without end fails here.
constexpr size_t kMaxStates = 3'000'000;

// Sanitizers make a state many times as dear: under them the second request has one attempt.
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
constexpr uint8_t kAttemptsOfSecond = 1;
#else
constexpr uint8_t kAttemptsOfSecond = kAttempts;
#endif

TEST(HandoffExplorationTest, EveryReachableStateKeepsTheInvariants) {
  const Exploration result = Explore(World(Mutation::kNone, {kAttempts, kAttemptsOfSecond}), kMaxStates);
  RecordProperty("states", std::to_string(result.states));
  RecordProperty("steps", std::to_string(result.steps));
  std::cout << result.states << " states, " << result.steps << " steps, " << result.states_at_rest << " at rest\n";
  EXPECT_EQ(result.violation, "");
  EXPECT_GT(result.states_at_rest, 0u);
  for (size_t kind = 0; kind < result.taken.size(); ++kind) {
    EXPECT_GT(result.taken[kind], 0u) << "never happens: " << Name(StepKind(kind));
  }
}

// A world that is small enough to be explored for each mutant of the two machines (tests/mutation).
TEST(SmallHandoffExplorationTest, EveryReachableStateOfOneAttemptEachKeepsTheInvariants) {
  const Exploration result = Explore(World(Mutation::kNone, {1, 1}), kMaxStates);
  EXPECT_EQ(result.violation, "");
  EXPECT_GT(result.states_at_rest, 0u);
}

struct Mutant {
  const char* name;
  Mutation mutation;
  const char* found_out_by;
};

std::ostream& operator<<(std::ostream& out, const Mutant& mutant) { return out << mutant.name; }

class HandoffMutantTest : public ::testing::TestWithParam<Mutant> {};

TEST_P(HandoffMutantTest, IsFoundOut) {
  const Exploration result = Explore(World(GetParam().mutation), kMaxStates);
  EXPECT_NE(result.violation.find(GetParam().found_out_by), std::string::npos)
      << "found: " << (result.violation.empty() ? "nothing" : result.violation);
}

constexpr Mutant kMutants[] = {
    Mutant{"FreesAtRevoke", Mutation::kFreeAtRevoke, "I1: a put can land"},
    Mutant{"FreesOnSilence", Mutation::kFreeOnSilence, "I1: a put can land"},
    Mutant{"KeepsGrantsOfRevokedPeer", Mutation::kKeepGrantsOfRevoked, "I3"},
    Mutant{"CommitsBeforeFlush", Mutation::kCommitBeforeFlush, "before its pages"},
    Mutant{"SendsAbortedBeforeFlush", Mutation::kAbortedBeforeFlush, "I1"},
    Mutant{"SendsFenceAfterFailedFlush", Mutation::kFenceAfterFailedFlush, "before its pages"},
    Mutant{"ReleasesSourceAtAbort", Mutation::kReleaseSourceAtAbort, "I1: a put reads a page that was given back"},
    Mutant{"PutsAfterRevoke", Mutation::kPutAfterRevoke, "I1"},
    Mutant{"ForgetsCancelReserve", Mutation::kForgetCancelReserve, "I2: the two sides disagree"},
    Mutant{"ForgetsAborted", Mutation::kForgetAborted, "I2: the two sides disagree"},
    Mutant{"IgnoresGrantThatCrossedCancel", Mutation::kIgnoreUnknownGrant, "I2: the two sides disagree"},
    Mutant{"ForgetsCommitted", Mutation::kForgetCommitted, "I2: the two sides disagree"},
    Mutant{"ForgetsRevoke", Mutation::kForgetRevoke, "I2: the two sides disagree"},
    Mutant{"KeepsGrantAfterCommit", Mutation::kCommitKeepsGrant, "I2: the two sides disagree"},
    Mutant{"AcceptsCommitAfterClose", Mutation::kCommitAfterClose, "a closed attempt was received"},
    Mutant{"WaitsForProof", Mutation::kWaitForProof, "I2"},
    Mutant{"WantsASharedPage", Mutation::kWantsSharedPage, "I1: a page that others read may be written"},
    Mutant{"GrantsNoPageToGrowInto", Mutation::kNoGrowthPage, "a sequence cannot grow"},
};

INSTANTIATE_TEST_SUITE_P(Explorer, HandoffMutantTest, ::testing::ValuesIn(kMutants),
                         [](const ::testing::TestParamInfo<Mutant>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace baton::handoff
