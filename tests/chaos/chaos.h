// SPDX-License-Identifier: Apache-2.0
// Runs schedules of requests and disturbances against a deployment of real processes, and checks the results.
//
// After a schedule every disturbance is ended. Then:
//   - a complete answer equals the undisturbed answer
//   - any other request failed in time, with a typed error that the schedule explains (explanation.h)
//   - every pair of workers serves again, and answers every request of the catalogue
//   - no page is in use or in quarantine, and no request waits
//   - every process ends when told to, so that no thread hangs
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/config.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cluster.h"
#include "common/steady_time.h"
#include "explanation.h"
#include "golden.h"
#include "schedule.h"
#include "tests/status_matchers.h"
#include "virtual_network.h"

namespace baton::testing {

class Chaos {
 public:
  struct Options {
    std::vector<std::string> worker_flags = {};
    std::vector<std::string> decode_flags = {};
    bool decode_prefills = false;  // decode workers serve alone, too
    int max_sequences = 64;        // of a decode worker
    VirtualNetwork* network = nullptr;
  };

  explicit Chaos(const Options& options)
      : network_(options.network),
        disturbances_({.prefill = {"p0", "p1"},
                       .decode = {"d0", "d1"},
                       .decode_prefills = options.decode_prefills,
                       .worker_requests = kMaxQueue + options.max_sequences,
                       .max_attempts = kMaxAttempts}) {
    plan_.routers = {"router", "router1"};
    plan_.workers = {"p0", "p1", "d0", "d1"};
    plan_.network = network_ != nullptr;
    std::vector<std::string> decode_flags = options.decode_flags;
    decode_flags.push_back(absl::StrCat("--max-sequences=", options.max_sequences));
    if (options.decode_prefills) decode_flags.emplace_back("--role=both");
    ClusterSpec spec{.workers = {Prefill("p0"), Prefill("p1"), Decode("d0", decode_flags), Decode("d1", decode_flags)},
                     .worker_flags = {"--chunk-tokens=128", "--heartbeat-interval=100ms", "--silent-after=500ms",
                                      absl::StrCat("--peer-timeout=", absl::FormatDuration(kPeerTimeout)),
                                      "--drain-timeout=1s", absl::StrCat("--max-queue=", kMaxQueue)},
                     .router_flags = {absl::StrCat("--peer-timeout=", absl::FormatDuration(kPeerTimeout)),
                                      "--heartbeat-interval=300ms", "--drain-timeout=1s",
                                      absl::StrCat("--max-attempts=", kMaxAttempts)},
                     .routers = 2,
                     .network = network_};
    spec.worker_flags.insert(spec.worker_flags.end(), options.worker_flags.begin(), options.worker_flags.end());
    absl::StatusOr<std::unique_ptr<Cluster>> cluster = Cluster::Start(std::move(spec));
    EXPECT_OK(cluster);
    if (!cluster.ok()) return;
    cluster_ = *std::move(cluster);
    for (int i = 0; i < plan_.requests; ++i) catalogue_.push_back(MakeRequest(i));
    for (const Reply& reply : cluster_->client().GenerateAll(catalogue_, {}, 8)) {
      EXPECT_TRUE(reply.status.ok()) << reply.status.error_message();
      EXPECT_EQ(reply.broken_promise, "");
      expected_.push_back(reply.answer);
    }
  }

  // Runs schedules of `events` each, with consecutive seeds. Stops at the first schedule that fails.
  void Run(uint64_t seed, int schedules, int events) {
    plan_.events = events;
    for (int i = 0; i < schedules && cluster_ != nullptr && !::testing::Test::HasFailure(); ++i) {
      RunSchedule(seed + i);
      if (::testing::Test::HasFailure()) {
        std::cout << "The schedule that failed has BATON_TEST_SEED=" << seed + i << ":\n";
        for (const ChaosEvent& event : MakeSchedule(plan_, seed + i)) std::cout << "  " << Describe(event) << "\n";
      }
    }
    std::cout << schedules * events << " events from seed " << seed << ": " << counts_.requests << " requests, "
              << counts_.answered << " answered, " << counts_.retried << " of them after another attempt, "
              << counts_.migrated << " after a live migration, " << counts_.local
              << " computed where they were decoded, " << counts_.cancelled << " cancelled, " << counts_.late
              << " past their deadline, " << counts_.failed
              << " failed with a typed error, of which the schedule explains " << counts_.explained << " ("
              << absl::StrFormat("%.1f", 100.0 * counts_.explained / std::max(counts_.failed, 1))
              << " %), with a slack of " << absl::FormatDuration(most_slack_) << " at most; " << counts_.disturbances
              << " disturbances; the longest pause in an answer was " << absl::FormatDuration(longest_pause_) << "\n";
    for (const auto& [reason, count] : reasons_) std::cout << "  " << count << " x " << reason << "\n";
    EXPECT_GT(counts_.answered, counts_.requests / 5) << "hardly anything survived: nothing was tested";
  }

 private:
  using Kind = ChaosEvent::Kind;
  static constexpr absl::Duration kPeerTimeout = absl::Milliseconds(1500);
  static constexpr absl::Duration kUsualDeadline = absl::Seconds(60);
  static constexpr int kMaxQueue = 256;
  static constexpr int kMaxAttempts = 8;
  // The time until a loss is noticed and a restarted process serves: the peer timeout, a process's start, a pause
  // before the next connection, and a probe.
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  static constexpr absl::Duration kSlack = absl::Seconds(10);
#else
  static constexpr absl::Duration kSlack = absl::Seconds(3);
#endif

  struct Counts {
    int requests = 0, answered = 0, retried = 0, migrated = 0, local = 0, cancelled = 0, late = 0, failed = 0,
        explained = 0, disturbances = 0;
  };
  struct Running {
    ChaosEvent event;
    SteadyTime started;
    SteadyTime ended;
    Reply reply;
    std::thread thread;
  };

  // Greedy and seeded sampling, penalties, stops, logprobs; prompts from 1 token to 1102.
  static v1::GenerateRequest MakeRequest(int i) {
    v1::GenerateRequest request = GreedyRequest(GoldenCases()[i % 12].prompt, 40 + 20 * i);
    v1::SamplingParams& sampling = *request.mutable_sampling();
    sampling.set_logprobs(2);
    if (i % 2 == 1) {
      sampling.set_temperature(1);
      sampling.set_seed(i);
      sampling.set_frequency_penalty(0.3);
    }
    if (i % 3 == 2) sampling.add_stop("e");
    if (i % 5 == 4) sampling.set_ignore_eos(false);
    return request;
  }

  void RunSchedule(uint64_t seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::vector<std::unique_ptr<Running>> running;
    const SteadyTime start = SteadyTime::Now();
    disturbances_.Clear();
    for (const ChaosEvent& event : MakeSchedule(plan_, seed)) {
      absl::SleepFor(start + event.at - SteadyTime::Now());
      if (event.kind == Kind::kRequest) {
        running.push_back(Send(event));
      } else {
        Disturb(event);
      }
    }
    if (network_ != nullptr) network_->Heal();
    std::vector<RequestSpan> spans;
    for (const std::unique_ptr<Running>& one : running) {
      one->thread.join();
      spans.push_back(SpanOf(*one));
    }
    for (const std::unique_ptr<Running>& one : running) Check(*one, spans, start);
    ASSERT_OK(cluster_->WaitReady());
    ASSERT_OK(cluster_->WaitIdle());
    for (size_t router = 0; router < plan_.routers.size(); ++router) {
      const std::vector<Reply> replies = cluster_->client(router).GenerateAll(catalogue_, {}, 8);
      for (size_t i = 0; i < replies.size(); ++i) {
        ASSERT_TRUE(replies[i].status.ok()) << "request " << i << ": " << replies[i].status.error_message();
        ASSERT_EQ(replies[i].answer, expected_[i]) << "request " << i;
      }
    }
    ASSERT_OK(cluster_->WaitIdle());
  }

  std::unique_ptr<Running> Send(const ChaosEvent& event) {
    auto one = std::make_unique<Running>();
    one->event = event;
    one->started = SteadyTime::Now();
    one->thread = std::thread([this, one = one.get()] {
      const absl::Duration deadline = one->event.deadline > absl::ZeroDuration() ? one->event.deadline : kUsualDeadline;
      one->reply = cluster_->client(one->event.router)
                       .Generate(catalogue_[one->event.request], {.timeout = deadline,
                                                                  .cancel_after_chunks = one->event.cancel_after_chunks,
                                                                  .wait_for_ready = true});
      one->ended = SteadyTime::Now();
    });
    return one;
  }

  void Disturb(const ChaosEvent& event) {
    counts_.disturbances += event.kind == Kind::kRestart || event.kind == Kind::kContinue ||
                                    event.kind == Kind::kRestore || (event.kind >= Kind::kDelay && !event.on)
                                ? 0
                                : 1;
    if (event.kind == Kind::kKill || event.kind == Kind::kDrain || event.kind == Kind::kStop ||
        event.kind == Kind::kCut) {
      disturbances_.Begin(Describe(event), event.node, event.other, SteadyTime::Now());
    }
    Do(event);
    if (event.kind == Kind::kRestart || event.kind == Kind::kContinue || event.kind == Kind::kRestore) {
      disturbances_.End(event.node, event.other, SteadyTime::Now());
    }
  }

  void Do(const ChaosEvent& event) {
    switch (event.kind) {
      case Kind::kRequest: return;
      case Kind::kKill: return cluster_->Kill(event.node);
      case Kind::kDrain: drained_[event.node] = SteadyTime::Now(); return cluster_->Drain(event.node);
      case Kind::kRestart:
        // The process may have been told to drain, and has had time to end.
        if (cluster_->process(event.node).running()) {
          const absl::StatusOr<int> end = cluster_->process(event.node).Wait(kPatience);
          EXPECT_OK(end) << event.node << " was told to end";
          EXPECT_EQ(end.value_or(0), 0) << event.node << " was told to end";
        }
        EXPECT_OK(cluster_->Restart(event.node));
        return;
      case Kind::kStop: EXPECT_OK(cluster_->process(event.node).Signal(SIGSTOP)); return;
      case Kind::kContinue: EXPECT_OK(cluster_->process(event.node).Signal(SIGCONT)); return;
      case Kind::kCut:
      case Kind::kRestore: {
        const auto change = event.kind == Kind::kCut ? &VirtualNetwork::Cut : &VirtualNetwork::Restore;
        (network_->*change)(event.node, event.other);
        if (event.both) (network_->*change)(event.other, event.node);
        return;
      }
      case Kind::kDelay: return network_->SetDelay(event.on ? absl::Milliseconds(50) : absl::ZeroDuration());
      case Kind::kLoss: return network_->SetLoss(event.on ? 0.01 : 0);
    }
  }

  // Checks for the complete answer, or for a prefix of the answer and an error that the schedule explains.
  void Check(const Running& one, const std::vector<RequestSpan>& all, SteadyTime zero) {
    SCOPED_TRACE(Describe(one.event));
    ++counts_.requests;
    const Reply& reply = one.reply;
    const Answer& expected = expected_[one.event.request];
    if (reply.status.ok()) {
      ++counts_.answered;
      counts_.retried += reply.finish.attempts_size() > 1 ? 1 : 0;
      const auto any_attempt = [&reply](const auto& is) { return std::ranges::any_of(reply.finish.attempts(), is); };
      counts_.migrated += any_attempt([](const v1::AttemptInfo& attempt) { return attempt.ended_by() == "migrated"; });
      counts_.local += any_attempt([](const v1::AttemptInfo& attempt) { return attempt.prefill_worker().empty(); });
      EXPECT_EQ(reply.broken_promise, "");
      EXPECT_EQ(reply.answer, expected);
      for (size_t i = 1; i < reply.chunk_times.size(); ++i) {
        longest_pause_ = std::max(longest_pause_, reply.chunk_times[i] - reply.chunk_times[i - 1]);
      }
      EXPECT_LT(longest_pause_, 10 * kPeerTimeout) << "a loss is noticed after one of them, and the answer resumed";
      return;
    }
    const std::vector<int32_t>& ids = reply.answer.token_ids;
    EXPECT_LE(ids.size(), expected.token_ids.size());
    EXPECT_TRUE(std::equal(ids.begin(), ids.begin() + std::min(ids.size(), expected.token_ids.size()),
                           expected.token_ids.begin()))
        << "got " << absl::StrJoin(ids, " ") << "\nexpected " << absl::StrJoin(expected.token_ids, " ");
    EXPECT_EQ(expected.text.substr(0, reply.answer.text.size()), reply.answer.text);
    switch (reply.status.error_code()) {
      case grpc::StatusCode::CANCELLED:
        ++counts_.cancelled;
        EXPECT_TRUE(one.event.cancel_after_chunks > 0 || ReachedAnEndingRouter(one)) << reply.status.error_message();
        break;
      case grpc::StatusCode::DEADLINE_EXCEEDED:
        ++counts_.late;
        EXPECT_GT(one.event.deadline, absl::ZeroDuration()) << reply.status.error_message();
        break;
      case grpc::StatusCode::UNAVAILABLE:
      case grpc::StatusCode::RESOURCE_EXHAUSTED:
        // A router refuses a request that cannot meet its deadline.
        if (one.event.deadline > absl::ZeroDuration() && absl::StrContains(reply.status.error_message(), "too late")) {
          ++counts_.late;
          break;
        }
        ++counts_.failed;
        ++reasons_[reply.status.error_message().substr(0, 60)];
        if (IsExplained(one, all)) {
          ++counts_.explained;
        } else {
          ADD_FAILURE() << "the schedule does not explain this error:\n" << Story(one, zero);
        }
        break;
      default: ADD_FAILURE() << "status " << reply.status.error_code() << ": " << reply.status.error_message();
    }
    const absl::Duration deadline = one.event.deadline > absl::ZeroDuration() ? one.event.deadline : kUsualDeadline;
    EXPECT_LT(one.ended - one.started, deadline + kAbortPatience) << "nobody is kept beyond a deadline";
  }

  RequestSpan SpanOf(const Running& one) const {
    return {.router = plan_.routers[one.event.router], .start = one.started, .end = one.ended};
  }

  bool IsExplained(const Running& one, const std::vector<RequestSpan>& all) {
    const RequestSpan span = SpanOf(one);
    const bool is_full = one.reply.status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
    if (is_full && disturbances_.FillQueues(span, all, kSlack)) return true;
    const absl::Duration slack =
        is_full ? disturbances_.SlackNeededForQuarantine(span) : disturbances_.SlackNeeded(span);
    if (slack <= kSlack) {
      most_slack_ = std::max(most_slack_, slack);
      return true;
    }
    return !is_full && absl::StrContains(one.reply.status.error_message(), "attempts failed") &&
           disturbances_.ExhaustAttempts(span, kSlack);
  }

  // Describes the disturbances before and during the request, and the request's end.
  std::string Story(const Running& one, SteadyTime zero) const {
    const auto seconds = [zero](SteadyTime at) { return absl::StrFormat("%.3f s", absl::ToDoubleSeconds(at - zero)); };
    std::string story = disturbances_.Story(one.started - absl::Minutes(1), one.ended, zero);
    absl::StrAppend(&story, "  ", seconds(one.started), ": the request starts at ", plan_.routers[one.event.router],
                    "\n");
    const std::vector<SteadyTime>& chunks = one.reply.chunk_times;
    if (!chunks.empty()) {
      absl::StrAppend(&story, "  ", seconds(chunks.front()), " to ", seconds(chunks.back()), ": ",
                      one.reply.answer.token_ids.size(), " tokens in ", chunks.size(), " chunks\n");
    }
    absl::StrAppend(&story, "  ", seconds(one.ended), ": the request ends with status ", one.reply.status.error_code(),
                    ": ", one.reply.status.error_message(), "\n");
    return story;
  }

  // A gRPC server cuts off calls that arrive during its shutdown, without a status of Baton's.
  bool ReachedAnEndingRouter(const Running& one) const {
    const auto drained = drained_.find(plan_.routers[one.event.router]);
    return drained != drained_.end() && one.started > drained->second &&
           one.started < drained->second + 2 * plan_.drain;
  }

  VirtualNetwork* const network_;
  ChaosPlan plan_;
  std::unique_ptr<Cluster> cluster_;
  std::vector<v1::GenerateRequest> catalogue_;
  std::vector<Answer> expected_;
  Counts counts_;
  Disturbances disturbances_;
  absl::Duration most_slack_;  // that the explanation of an error needed
  absl::Duration longest_pause_;
  std::map<std::string, SteadyTime> drained_;  // by process: time of the last SIGTERM
  std::map<std::string, int> reasons_;         // number of typed errors, by the beginning of the message
};

// Returns the number in environment variable `name`, or `otherwise`.
inline uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* given = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

}  // namespace baton::testing
