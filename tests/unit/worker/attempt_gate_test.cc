// SPDX-License-Identifier: Apache-2.0
#include "worker/admission/attempt_gate.h"

#include <thread>

#include "common/steady_time.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::baton::testing::Fails;

TEST(AttemptGate, RefusesMoreThanItsLimitUntilATicketComesBack) {
  AttemptGate gate(2);
  ASSERT_OK_AND_ASSIGN(auto first, gate.Enter());
  ASSERT_OK_AND_ASSIGN(auto second, gate.Enter());
  EXPECT_TRUE(Fails(gate.Enter(), absl::StatusCode::kResourceExhausted, "holds 2 requests"));
  first.reset();
  EXPECT_OK(gate.Enter());
}

TEST(AttemptGate, ClosedLetsNobodyInAndWaitsForThoseInside) {
  AttemptGate gate(2);
  ASSERT_OK_AND_ASSIGN(auto ticket, gate.Enter());
  gate.Close();
  EXPECT_TRUE(Fails(gate.Enter(), absl::StatusCode::kUnavailable, "drains"));
  EXPECT_FALSE(gate.WaitEmpty(SteadyTime::Now() + absl::Milliseconds(20)));
  std::thread leaver([&] { ticket.reset(); });
  EXPECT_TRUE(gate.WaitEmpty(SteadyTime::Now() + absl::Seconds(10)));
  leaver.join();
}

}  // namespace
}  // namespace baton
