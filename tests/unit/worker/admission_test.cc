#include "worker/admission.h"

#include <thread>

#include "absl/time/clock.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::baton::testing::Fails;

TEST(Admission, RefusesMoreThanItsLimitUntilATicketComesBack) {
  Admission admission(2);
  ASSERT_OK_AND_ASSIGN(auto first, admission.Enter());
  ASSERT_OK_AND_ASSIGN(auto second, admission.Enter());
  EXPECT_TRUE(Fails(admission.Enter(), absl::StatusCode::kResourceExhausted, "holds 2 requests"));
  first.reset();
  EXPECT_OK(admission.Enter());
}

TEST(Admission, ClosedLetsNobodyInAndWaitsForThoseInside) {
  Admission admission(2);
  ASSERT_OK_AND_ASSIGN(auto ticket, admission.Enter());
  admission.Close();
  EXPECT_TRUE(Fails(admission.Enter(), absl::StatusCode::kUnavailable, "drains"));
  EXPECT_FALSE(admission.WaitEmpty(absl::Now() + absl::Milliseconds(20)));
  std::thread leaver([&] { ticket.reset(); });
  EXPECT_TRUE(admission.WaitEmpty(absl::Now() + absl::Seconds(10)));
  leaver.join();
}

}  // namespace
}  // namespace baton
