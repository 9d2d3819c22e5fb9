// SPDX-License-Identifier: Apache-2.0
// The router's action after each outcome that a worker reports: one row per cause.
#include <gtest/gtest.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <optional>
#include <string>
#include <vector>

#include "request_machine_fixture.h"
#include "router/metrics.h"
#include "tests/metrics_page.h"
#include "tests/status_matchers.h"

namespace baton::router {
namespace {

using baton::testing::Fails;

enum class Avoided { kNobody, kReporter, kPeer };
enum class Client { kNextAttempt, kInvalidArgument, kDeadlineExceeded };

struct Case {
  Cause cause;
  std::optional<Fault> at_fault;  // nothing: the cause's own
  Avoided avoided;
  bool breaks_pair;
  bool counts;
  Client client;
};

const Case kCases[] = {
    {Cause::kCancelled, {}, Avoided::kNobody, false, true, Client::kNextAttempt},
    {Cause::kDeadlineExceeded, {}, Avoided::kNobody, false, false, Client::kDeadlineExceeded},
    {Cause::kInvalid, {}, Avoided::kNobody, false, false, Client::kInvalidArgument},
    {Cause::kTooLarge, {}, Avoided::kNobody, false, false, Client::kInvalidArgument},
    {Cause::kOverloaded, {}, Avoided::kReporter, false, false, Client::kNextAttempt},
    {Cause::kOverloaded, Fault::kPeer, Avoided::kPeer, false, false, Client::kNextAttempt},
    {Cause::kQuarantined, {}, Avoided::kReporter, false, false, Client::kNextAttempt},
    {Cause::kQuarantined, Fault::kPeer, Avoided::kPeer, false, false, Client::kNextAttempt},
    {Cause::kPreempted, {}, Avoided::kNobody, false, false, Client::kNextAttempt},
    {Cause::kDraining, {}, Avoided::kReporter, false, true, Client::kNextAttempt},
    {Cause::kDraining, Fault::kPeer, Avoided::kPeer, false, true, Client::kNextAttempt},
    {Cause::kRevoked, {}, Avoided::kNobody, false, true, Client::kNextAttempt},
    {Cause::kUnknownAttempt, {}, Avoided::kNobody, false, true, Client::kNextAttempt},
    {Cause::kRefused, {}, Avoided::kReporter, false, true, Client::kNextAttempt},
    {Cause::kPeerLost, {}, Avoided::kPeer, true, true, Client::kNextAttempt},
    {Cause::kPeerLost, Fault::kPair, Avoided::kNobody, true, true, Client::kNextAttempt},
    {Cause::kPairMismatch, {}, Avoided::kNobody, true, true, Client::kNextAttempt},
    {Cause::kInternal, {}, Avoided::kReporter, false, true, Client::kNextAttempt},
    {Cause::kInternal, Fault::kPeer, Avoided::kPeer, false, true, Client::kNextAttempt},
    {Cause::kInternal, Fault::kPair, Avoided::kNobody, true, true, Client::kNextAttempt},
};

TEST_F(RequestMachineTest, EachOutcomeOfAWorkerHasItsConsequences) {
  for (const Case& c : kCases) {
    for (const bool by_prefill : {false, true}) {
      if (c.cause == Cause::kCancelled && !by_prefill) continue;  // the prefill worker's reason decides
      const Fault at_fault = c.at_fault.value_or(DefaultFault(c.cause));
      SCOPED_TRACE(absl::StrCat(std::string(Name(c.cause)), " of ", std::string(Name(at_fault)), " by ",
                                by_prefill ? "prefill" : "decode"));
      const WorkerKey reporter{by_prefill ? "p1" : "d1", 1};
      const WorkerKey peer{by_prefill ? "d1" : "p1", 1};
      actions_.clear();
      policy_.max_attempts = 2;
      BeginAccepted();
      by_prefill ? Prefill(1, PrefillFailed(c.cause, at_fault)) : Decode(1, DecodeFailed(c.cause, at_fault));

      const auto ended = Last<action::AttemptEnded>();
      EXPECT_EQ(ended.outcome.cause, c.cause);
      EXPECT_EQ(ended.broken_pair, c.breaks_pair ? std::optional<uint64_t>(77) : std::nullopt);
      if (c.client != Client::kNextAttempt) {
        const bool invalid = c.client == Client::kInvalidArgument;
        EXPECT_EQ(Failure().code(), invalid ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kDeadlineExceeded);
        EXPECT_EQ(Count<action::Place>(), 1) << "no second attempt";
        continue;
      }
      ASSERT_EQ(Count<action::Place>(), 2);
      std::vector<WorkerKey> avoided;
      if (c.avoided == Avoided::kReporter) avoided.push_back(reporter);
      if (c.avoided == Avoided::kPeer) avoided.push_back(peer);
      EXPECT_EQ(Last<action::Place>().avoid, avoided);

      // A second one ends the request exactly if the attempts count.
      PlaceOn("p1", "d1");
      Accept(2);
      by_prefill ? Prefill(2, PrefillFailed(c.cause, at_fault)) : Decode(2, DecodeFailed(c.cause, at_fault));
      EXPECT_EQ(Count<action::Fail>(), c.counts ? 1 : 0);
      if (c.counts) {
        EXPECT_TRUE(Fails(Failure(), absl::StatusCode::kUnavailable,
                          absl::StrCat("the last attempt by ", std::string(Name(c.cause)))));
      }
    }
  }
}

TEST_F(RequestMachineTest, ThePeersLackOfRoomTellsTheClientWhenToComeBack) {
  policy_.overload_wait = absl::ZeroDuration();
  for (const Cause cause : {Cause::kOverloaded, Cause::kQuarantined}) {
    actions_.clear();
    BeginAccepted();
    v1::PrefillEvent event = PrefillFailed(cause, Fault::kPeer);
    event.mutable_failed()->set_retry_after_ms(7000);
    Prefill(1, event);
    PlaceNowhere(PlacementResult::Kind::kOnlyAvoided);
    EXPECT_EQ(Failure().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(Last<action::Fail>().retry_after, absl::Seconds(7));
  }
}

TEST_F(RequestMachineTest, ADeadlineThatACallReportsIsTheRequests) {
  BeginAccepted();
  PrefillEnds(1, absl::DeadlineExceededError("Deadline Exceeded"));
  EXPECT_EQ(Failure().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Last<action::AttemptEnded>().outcome.cause, Cause::kDeadlineExceeded);
  EXPECT_EQ(Last<action::AttemptEnded>().outcome.at_fault, Fault::kClient);
}

TEST(RouterOutcomeMetricsTest, TheCauseIsTheLabel) {
  prometheus::Registry registry;
  RouterMetrics metrics(registry);
  for (const Case& c : kCases) metrics.AttemptEnded("m", c.cause);
  const auto page = baton::testing::MetricsPage::Parse(prometheus::TextSerializer().Serialize(registry.Collect()));
  for (const Case& c : kCases) {
    EXPECT_GE(page.Sum("baton_attempts_total", {{"outcome", std::string(Name(c.cause))}}), 1) << c.cause;
  }
}

TEST(RouterObjectivesMetricsTest, EachObjectiveIsCountedAndBothTogether) {
  prometheus::Registry registry;
  RouterMetrics metrics(registry);
  metrics.ObjectivesKnown("m", /*ttft_met=*/true, /*tpot_met=*/true);
  metrics.ObjectivesKnown("m", true, false);
  metrics.ObjectivesKnown("m", false, false);
  const auto page = baton::testing::MetricsPage::Parse(prometheus::TextSerializer().Serialize(registry.Collect()));
  EXPECT_EQ(page.Sum("baton_slo_requests_total"), 3);
  EXPECT_EQ(page.Sum("baton_slo_attained_total", {{"slo", "ttft"}}), 2);
  EXPECT_EQ(page.Sum("baton_slo_attained_total", {{"slo", "tpot"}}), 1);
  EXPECT_EQ(page.Sum("baton_slo_attained_total", {{"slo", "all"}}), 1);
}

}  // namespace
}  // namespace baton::router
