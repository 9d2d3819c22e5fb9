// Random schedules on the loopback.
#include "chaos.h"

namespace baton::testing {
namespace {

constexpr int kSchedules = 2;
constexpr int kEvents = 100;

// Over shared memory: processes die, stop and come back.
TEST(ChaosTest, Processes) {
  Chaos chaos({.worker_flags = {}, .network = nullptr});
  chaos.Run(FromEnvironment("BATON_TEST_SEED", 1),
            static_cast<int>(FromEnvironment("BATON_TEST_SCHEDULES", kSchedules)), kEvents);
}

}  // namespace
}  // namespace baton::testing
