// SPDX-License-Identifier: Apache-2.0
// Live migration: a sequence that moves between decode workers while it runs is answered as one that stays (I5),
// gapless (I4), and leaves nothing behind (I3).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "common/steady_time.h"
#include "pipeline.h"
#include "tests/status_matchers.h"

namespace baton::testing::migration {
namespace {

constexpr absl::Duration kDeadline = absl::Seconds(60);
// The model is small: a request may be over before its move is. So many tries are enough.
constexpr int kPatience = 200;

// The events of all streams of one request, in order.
class Events {
 public:
  void Post(std::function<void()> event) {
    {
      MutexLock lock(mutex_);
      events_.push_back(std::move(event));
    }
    posted_.NotifyAll();
  }
  // False if none comes.
  bool RunOne() {
    std::function<void()> event;
    {
      MutexLock lock(mutex_);
      const SteadyTime deadline = SteadyTime::Now() + kDeadline;
      while (events_.empty()) {
        if (!posted_.WaitUntil(mutex_, deadline)) return false;
      }
      event = std::move(events_.front());
      events_.pop_front();
    }
    event();
    return true;
  }

 private:
  Mutex mutex_;
  CondVar posted_;
  std::deque<std::function<void()>> events_ ABSL_GUARDED_BY(mutex_);
};

template <typename Event>
class CallbackSink final : public EventSink<Event> {
 public:
  CallbackSink(std::shared_ptr<Events> events, std::function<void(const Event&)> on_event)
      : events_(std::move(events)), on_event_(std::move(on_event)) {}
  void Write(Event event, bool) override {
    events_->Post([on_event = on_event_, event = std::move(event)] { on_event(event); });
  }
  bool cancelled() const override { return false; }

 private:
  const std::shared_ptr<Events> events_;
  const std::function<void(const Event&)> on_event_;
};

// A request that moves from node to node as it goes, computed by whichever node it begins on.
class Traveller {
 public:
  struct Plan {
    std::vector<DecodeNode*> nodes;
    // Asked with the number of tokens that have come, while it is not moving.
    std::function<bool(size_t)> moves = [](size_t) { return true; };
    // Asked when the other node is about to be told: true gives the move up again.
    std::function<bool()> changes_mind = [] { return false; };
  };

  Traveller(Plan plan, const Request& request) : plan_(std::move(plan)) {
    static std::atomic<uint64_t> next_request{1'000'000};
    attempt_.key.request = {next_request++, 0};
    attempt_.due = absl::Now();
    attempt_.prompt = request.prompt;
    attempt_.sampling = request.sampling;
    if (request.shares_pages) attempt_.page_hash_root = PageHashRoot("model", "", "");
  }

  Answer Run() {
    BeginAnew();
    while (!done_ || moves_under_way_ > 0) {
      if (events_->RunOne()) continue;
      answer_.error = "nothing happened within the deadline";
      break;
    }
    if (next_) Leave(*next_);
    Leave(here_);
    return std::move(answer_);
  }
  int tries() const { return tries_; }  // how often a worker was told to hand over
  int moves() const { return moves_; }
  uint64_t bytes() const { return bytes_; }

 private:
  struct Stay {
    AttemptKey key;
    DecodeNode* node = nullptr;
    bool local = false;
    std::optional<uint32_t> from_index;  // of a move that has arrived: tokens before come from the stay before
  };

  void Leave(const Stay& stay) { stay.node->Cancel(stay.key, stay.local); }

  Stay Open(DecodeNode* node, bool local) {
    attempt_.key.attempt = ++answer_.attempts;
    attempt_.prior_output = answer_.tokens;
    const Stay stay{.key = attempt_.key, .node = node, .local = local, .from_index = {}};
    const absl::Status opened =
        node->Open(attempt_, local,
                   std::make_shared<CallbackSink<v1::DecodeEvent>>(
                       events_, [this, number = attempt_.key.attempt](const auto& e) { OnDecodeEvent(number, e); }));
    if (!opened.ok()) Error(opened.ToString());
    return stay;
  }

  void BeginAnew() { here_ = Open(plan_.nodes[turn_++ % plan_.nodes.size()], /*local=*/true); }

  void Move() {
    DecodeNode* node = plan_.nodes[turn_++ % plan_.nodes.size()];
    if (node == here_.node) node = plan_.nodes[turn_++ % plan_.nodes.size()];
    next_ = Open(node, /*local=*/false);
    order_ = {.from = here_.key,
              .to = next_->key,
              .prior_output_tokens = static_cast<uint32_t>(answer_.tokens.size()),
              .target = node->target()};
  }

  void OnDecodeEvent(int number, const v1::DecodeEvent& event) {
    const bool of_next = next_ && static_cast<int>(next_->key.attempt) == number;
    if (!of_next && static_cast<int>(here_.key.attempt) != number) return;
    if (event.has_accepted() && of_next) {
      const MigrationOrder order = order_;
      ++tries_;
      ++moves_under_way_;
      here_.node->Migrate(order, std::make_shared<CallbackSink<v1::PrefillEvent>>(
                                     events_, [this, order](const auto& e) { OnMigrationEvent(order, e); }));
      if (plan_.changes_mind()) {
        here_.node->CancelMigration(order);
        GiveUpMove();
      }
    } else if (event.has_started() && of_next) {
      next_->from_index = event.started().next_output_index();
    }
    for (const v1::TokenEvent& token : event.tokens().tokens()) tokens_.emplace(token.output_index(), ToSampled(token));
    TakeTokens();
    if (next_ && next_->from_index && answer_.tokens.size() >= *next_->from_index) {
      Leave(here_);
      here_ = *std::exchange(next_, std::nullopt);
      ++moves_;
    }
    if (event.has_finished()) {
      finished_ = true;
    } else if (event.has_failed()) {
      OnFailed(of_next, event.failed());
    }
    done_ = done_ || (finished_ && tokens_.empty());
  }

  // The one event of each.
  void OnMigrationEvent(const MigrationOrder& order, const v1::PrefillEvent& event) {
    --moves_under_way_;
    if (event.has_handed_over()) bytes_ += event.handed_over().kv_bytes();
    const bool stays = event.has_failed() && next_ && next_->key == order.to && !next_->from_index;
    if (stays) GiveUpMove();
  }

  void OnFailed(bool of_next, const v1::AttemptFailed& failed) {
    if (failed.cause() == v1::CAUSE_INTERNAL || failed.cause() == v1::CAUSE_INVALID) {
      return Error(failed.message());
    }
    if (of_next) return GiveUpMove();
    if (failed.cause() == v1::CAUSE_PREEMPTED) ++answer_.preemptions;
    if (next_) GiveUpMove();
    tokens_.clear();
    BeginAnew();
  }

  void GiveUpMove() {
    Leave(*next_);
    next_.reset();
  }

  // In order; those that came twice, once.
  void TakeTokens() {
    for (auto it = tokens_.begin(); it != tokens_.end() && it->first <= answer_.tokens.size(); it = tokens_.erase(it)) {
      const SampledToken& token = it->second;
      if (it->first < answer_.tokens.size()) {
        if (answer_.tokens[it->first] != token.token) Error("a token came again as another one");
        continue;
      }
      answer_.tokens.push_back(token.token);
      if (attempt_.sampling.logprobs.has_value()) answer_.logprobs.push_back(token);
      if (!next_ && !finished_ && plan_.moves(answer_.tokens.size())) Move();
    }
  }

  void Error(std::string what) {
    answer_.error = std::move(what);
    done_ = true;
  }

  const Plan plan_;
  const std::shared_ptr<Events> events_ = std::make_shared<Events>();
  Attempt attempt_;
  Answer answer_;
  std::map<uint32_t, SampledToken> tokens_;  // not taken yet
  Stay here_;
  std::optional<Stay> next_;
  MigrationOrder order_;
  size_t turn_ = 0;
  int tries_ = 0;
  int moves_ = 0;
  int moves_under_way_ = 0;
  uint64_t bytes_ = 0;
  bool finished_ = false;
  bool done_ = false;
};

std::vector<Answer> RunAll(std::vector<std::unique_ptr<Traveller>>& travellers) {
  std::vector<Answer> answers(travellers.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < travellers.size(); ++i) threads.emplace_back([&, i] { answers[i] = travellers[i]->Run(); });
  for (std::thread& thread : threads) thread.join();
  return answers;
}

Request LongRequest(int prompt_tokens, uint32_t output_tokens) {
  Request request;
  for (int t = 0; t < prompt_tokens; ++t) request.prompt.push_back((t * 7 + t * t) % kTinyVocab);
  request.sampling.max_tokens = output_tokens;
  request.sampling.temperature = 0.9f;
  request.sampling.seed = 7;
  request.sampling.logprobs = 3;
  return request;
}

TEST(Migration, ASequenceGoesOnElsewhereWithoutAGap) {
  Request request = LongRequest(40, 200);
  request.shares_pages = false;  // every page is sent, whatever earlier runs left
  DecodeNode a("a", TinyNode());
  DecodeNode b("b", TinyNode());
  int moves = 0;
  for (int run = 0; moves == 0 && run < kPatience; ++run) {
    Traveller traveller({.nodes = {&a, &b}, .moves = [](size_t tokens) { return tokens == 20; }}, request);
    const Answer answer = traveller.Run();
    ExpectSame({answer}, AnswersAlone({request}));
    moves = traveller.moves();
    if (moves == 1) {
      EXPECT_GE(traveller.bytes(), 3 * a.pool().layout().page_bytes()) << "59 tokens and more: three full pages";
    }
    EXPECT_TRUE(a.BecomesEmpty());
    EXPECT_TRUE(b.BecomesEmpty());
  }
  EXPECT_EQ(moves, 1);
}

class BackAndForth : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Migration, BackAndForth, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "SeveralKvGroups" : "OneKvGroup"; });

TEST_P(BackAndForth, GivesTheSameBits) {
  Request request = LongRequest(40, 400);
  NodeOptions options = TinyNode();
  options.kv_groups = GetParam();
  DecodeNode a("a", options);
  DecodeNode b("b", options);
  for (const bool shares : {false, true}) {
    request.shares_pages = shares;
    int moves = 0;
    for (int run = 0; moves < 3 && run < kPatience; ++run) {
      Traveller traveller({.nodes = {&a, &b}}, request);
      const Answer answer = traveller.Run();
      ExpectSame({answer}, AnswersAlone({request}));
      moves += traveller.moves();
      EXPECT_TRUE(a.BecomesEmpty());
      EXPECT_TRUE(b.BecomesEmpty());
    }
    EXPECT_GE(moves, 3);
  }
}

TEST(Migration, WhatTheOtherHasAlreadyIsNotSent) {
  const Request request = LongRequest(200, 300);
  DecodeNode a("a", TinyNode());
  DecodeNode b("b", TinyNode());
  ExpectSame({Serve({.decode = {&b}}, request)}, AnswersAlone({request}));
  int moves = 0;
  for (int run = 0; moves == 0 && run < kPatience; ++run) {
    Traveller traveller({.nodes = {&a, &b}, .moves = [](size_t tokens) { return tokens == 5; }}, request);
    ExpectSame({traveller.Run()}, AnswersAlone({request}));
    moves = traveller.moves();
    EXPECT_EQ(traveller.bytes(), 0u) << "it served the same request: every full page is there";
  }
  EXPECT_EQ(moves, 1) << "a sequence that did not move sends nothing either";
}

TEST(Migration, StaysWhereItIsWhenItCannotMove) {
  Request request = LongRequest(1, 10);  // never fills a page
  DecodeNode a("a", TinyNode());
  DecodeNode b("b", TinyNode());
  int tries = 0;
  for (int run = 0; tries == 0 && run < kPatience; ++run) {
    Traveller traveller({.nodes = {&a, &b}}, request);
    ExpectSame({traveller.Run()}, AnswersAlone({request}));
    EXPECT_EQ(traveller.moves(), 0);
    tries = traveller.tries();
  }
  EXPECT_GT(tries, 0) << "no sequence was told to move";
  EXPECT_TRUE(a.BecomesEmpty());
  EXPECT_TRUE(b.BecomesEmpty());
}

TEST(Migration, StaysWhenTheMoveIsGivenUpAtAnyPoint) {
  const Request request = LongRequest(60, 400);
  DecodeNode a("a", TinyNode());
  DecodeNode b("b", TinyNode());
  int given_up = 0;
  for (int run = 0; given_up < 2 && run < kPatience; ++run) {
    int turn = 0;
    Traveller traveller({.nodes = {&a, &b}, .changes_mind = [&] { return ++turn % 3 != 0; }}, request);
    ExpectSame({traveller.Run()}, AnswersAlone({request}));
    given_up += traveller.tries() - traveller.moves();
  }
  EXPECT_GE(given_up, 2);
  EXPECT_TRUE(a.BecomesEmpty());
  EXPECT_TRUE(b.BecomesEmpty());
}

TEST(Migration, AWorkerThatDrainsOffersSequencesOnceTheyFillAPage) {
  DecodeNode node("a", TinyNode());
  const int page_tokens = node.pool().layout().page_tokens();
  node.StartDraining();
  Attempt attempt;
  attempt.key = {{7, 7}, 1};
  attempt.due = absl::Now();
  attempt.prompt = {1};
  attempt.sampling.max_tokens = 3 * page_tokens;
  const auto events = std::make_shared<Events>();
  int tokens = 0;
  std::vector<int> offered_after;
  bool ended = false;
  const auto on_event = [&](const v1::DecodeEvent& event) {
    tokens += event.tokens().tokens_size();
    if (event.has_draining()) offered_after.push_back(tokens);
    ended = event.has_finished() || event.has_failed();
  };
  ASSERT_OK(node.Open(attempt, /*local=*/true, std::make_shared<CallbackSink<v1::DecodeEvent>>(events, on_event)));
  while (!ended) ASSERT_TRUE(events->RunOne());
  EXPECT_EQ(tokens, 3 * page_tokens);
  EXPECT_THAT(offered_after, ::testing::ElementsAre(page_tokens))
      << "with the prompt's one, and the last has no KV yet";
  EXPECT_TRUE(node.BecomesEmpty());
}

TEST(Migration, AllAtOnceAndWithFewPages) {
  const std::vector<Request> requests = MixedRequests(24, kTinyVocab, 60, 90);
  const std::vector<Answer> reference = AnswersAlone(requests);
  for (const int pages : {256, 40}) {
    NodeOptions options = TinyNode(pages);
    options.schedule.token_budget = 64;
    options.schedule.chunk_tokens = 24;
    DecodeNode a("a", options);
    DecodeNode b("b", options);
    DecodeNode c("c", options);
    int moves = 0;
    // A sequence may finish before it has moved, and all of a round may.
    for (int round = 0; round < 20 && moves == 0; ++round) {
      std::vector<std::unique_ptr<Traveller>> travellers;
      for (size_t i = 0; i < requests.size(); ++i) {
        auto random = std::make_shared<std::mt19937>(i);
        const auto one_in = [random](int n) { return (*random)() % n == 0; };
        Traveller::Plan plan{.nodes = {&a, &b, &c},
                             .moves = [one_in](size_t) { return one_in(8); },
                             .changes_mind = [one_in] { return one_in(4); }};
        std::rotate(plan.nodes.begin(), plan.nodes.begin() + i % 3, plan.nodes.end());
        travellers.push_back(std::make_unique<Traveller>(std::move(plan), requests[i]));
      }
      ExpectSame(RunAll(travellers), reference);
      for (const auto& traveller : travellers) moves += traveller->moves();
    }
    EXPECT_GT(moves, 0) << pages << " pages";
    for (DecodeNode* node : {&a, &b, &c}) EXPECT_TRUE(node->BecomesEmpty());
  }
}

}  // namespace
}  // namespace baton::testing::migration
