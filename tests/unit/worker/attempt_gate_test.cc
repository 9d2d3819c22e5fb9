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
  ASSERT_OK_AND_ASSIGN(auto first, gate.Enter(Route::kLocal));
  ASSERT_OK_AND_ASSIGN(auto second, gate.Enter(Route::kLocal));
  EXPECT_TRUE(Fails(gate.Enter(Route::kLocal), absl::StatusCode::kResourceExhausted, "holds 2 requests"));
  first.reset();
  EXPECT_OK(gate.Enter(Route::kLocal));
}

TEST(AttemptGate, ClosedLetsNobodyInAndWaitsForThoseInside) {
  AttemptGate gate(2);
  ASSERT_OK_AND_ASSIGN(auto ticket, gate.Enter(Route::kLocal));
  gate.Close();
  EXPECT_TRUE(Fails(gate.Enter(Route::kLocal), absl::StatusCode::kUnavailable, "drains"));
  EXPECT_FALSE(gate.WaitEmpty(SteadyTime::Now() + absl::Milliseconds(20)));
  std::thread leaver([&] { ticket.reset(); });
  EXPECT_TRUE(gate.WaitEmpty(SteadyTime::Now() + absl::Seconds(10)));
  leaver.join();
}

TEST(AttemptGate, AClosedRouteSaysWhyAndOtherRoutesAreOpen) {
  AttemptGate gate(2);
  gate.SetRoutes(Routes::None().With(Route::kReceive), "the worker has role decode");
  EXPECT_TRUE(Fails(gate.Enter(Route::kHandOver), absl::StatusCode::kUnavailable, "has role decode"));
  EXPECT_TRUE(Fails(gate.Enter(Route::kLocal), absl::StatusCode::kUnavailable, "has role decode"));
  EXPECT_OK(gate.Enter(Route::kReceive));
  gate.SetRoutes(Routes::All(), "");
  EXPECT_OK(gate.Enter(Route::kHandOver));
}

}  // namespace
}  // namespace baton
