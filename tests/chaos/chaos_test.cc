// SPDX-License-Identifier: Apache-2.0
// Random schedules on the loopback.
#include "chaos.h"

namespace baton::testing {
namespace {

constexpr int kSchedules = 2;
constexpr int kEvents = 100;

void RunSchedules(Chaos chaos) {
  chaos.Run(FromEnvironment("BATON_TEST_SEED", 1),
            static_cast<int>(FromEnvironment("BATON_TEST_SCHEDULES", kSchedules)), kEvents);
}

// Processes that share memory die, stop and return.
TEST(ChaosTest, Processes) { RunSchedules(Chaos({})); }

// Local prompts and reservations compete for few slots and pages.
TEST(ChaosTest, DecodeWorkersThatPrefillToo) {
  RunSchedules(Chaos({.decode_flags = {"--pages=160"}, .decode_prefills = true, .max_sequences = 4}));
}

}  // namespace
}  // namespace baton::testing
