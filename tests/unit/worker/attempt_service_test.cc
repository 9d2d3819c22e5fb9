// SPDX-License-Identifier: Apache-2.0
#include "worker/attempt_service.h"

#include <gtest/gtest.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <string>
#include <utility>

#include "baton/v1/worker.pb.h"
#include "tests/metrics_page.h"
#include "worker/admission/attempt_gate.h"
#include "worker/metrics.h"

namespace baton {
namespace {

TEST(AttemptServiceTest, ACallThatIsTurnedDownHasAnOutcome) {
  const std::pair<absl::Status, Cause> cases[] = {
      {absl::ResourceExhaustedError("full"), Cause::kOverloaded},
      {absl::UnavailableError("drains"), Cause::kDraining},
      {absl::FailedPreconditionError("another version"), Cause::kRefused},
      {absl::InvalidArgumentError("no prompt"), Cause::kInvalid},
      {absl::AlreadyExistsError("open"), Cause::kInvalid},
  };
  for (const auto& [status, cause] : cases) {
    const Outcome outcome = OutcomeOfRefusal(status);
    EXPECT_EQ(outcome.cause, cause);
    EXPECT_EQ(outcome.at_fault, DefaultFault(cause));
    EXPECT_EQ(outcome.detail, status.message());
    EXPECT_FALSE(BreaksPair(outcome));
  }
}

TEST(AttemptServiceTest, AFullAndAClosedGateAreToldApart) {
  AttemptGate gate(1);
  const auto ticket = gate.Enter(Route::kLocal);
  EXPECT_EQ(OutcomeOfRefusal(gate.Enter(Route::kLocal).status()).cause, Cause::kOverloaded);
  gate.Close();
  EXPECT_EQ(OutcomeOfRefusal(gate.Enter(Route::kLocal).status()).cause, Cause::kDraining);
}

TEST(AttemptServiceTest, TheRouterReadsTheOutcomeThatTheWorkerTells) {
  for (const Outcome& told : {Outcome(Cause::kDraining, Fault::kPeer, "the decode worker is draining"),
                              Outcome(Cause::kOverloaded, "full"), Outcome(Cause::kInternal, Fault::kPair, "tag")}) {
    v1::PrefillEvent event;
    FillFailed(told, event.mutable_failed());
    EXPECT_EQ(FromProto(event.failed()), told);
  }
}

TEST(AttemptServiceTest, TheCauseIsTheMetricsLabel) {
  prometheus::Registry registry;
  WorkerMetrics metrics(registry, "m", "prefill");
  Attempt attempt;
  for (const Cause cause : {Cause::kHandedOver, Cause::kDraining, Cause::kPeerLost, Cause::kTooLarge}) {
    metrics.AttemptEnded(attempt, cause);
    const auto page = testing::MetricsPage::Parse(prometheus::TextSerializer().Serialize(registry.Collect()));
    EXPECT_EQ(page.Sum("baton_worker_attempts_total", {{"outcome", std::string(Name(cause))}}), 1) << cause;
  }
}

}  // namespace
}  // namespace baton
