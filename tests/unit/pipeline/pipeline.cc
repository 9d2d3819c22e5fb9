// SPDX-License-Identifier: Apache-2.0
#include "pipeline.h"

#include <bit>
#include <random>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "common/steady_time.h"
#include "tests/grouped_model.h"
#include "tests/status_matchers.h"
#include "tests/tiny_models.h"
#include "worker/reports.h"

namespace baton::testing {
namespace {

constexpr absl::Duration kDeadline = absl::Seconds(60);
constexpr int kMaxAttempts = 200;

template <typename T>
T ValueOrDie(absl::StatusOr<T> value) {
  EXPECT_OK(value);
  return *std::move(value);
}

TransportOptions Loopback(absl::Duration peer_timeout) {
  TransportOptions options;
  options.listen_address = "inproc:";
  options.secret = "a secret of the tests";
  options.heartbeat_interval = absl::Milliseconds(20);
  options.silent_after = absl::Milliseconds(200);
  options.peer_timeout = peer_timeout;
  return options;
}

// Both streams of an attempt end here, in the order in which their events were written.
class Inbox {
 public:
  using Item = std::variant<v1::PrefillEvent, v1::DecodeEvent>;

  void Put(Item item) {
    {
      MutexLock lock(mutex_);
      items_.push_back(std::move(item));
    }
    arrived_.NotifyAll();
  }
  // Null after the deadline.
  std::unique_ptr<Item> Take() {
    const SteadyTime deadline = SteadyTime::Now() + kDeadline;
    MutexLock lock(mutex_);
    while (items_.empty()) {
      if (!arrived_.WaitUntil(mutex_, deadline)) return nullptr;
    }
    auto item = std::make_unique<Item>(std::move(items_.front()));
    items_.pop_front();
    return item;
  }

 private:
  Mutex mutex_;
  CondVar arrived_;
  std::deque<Item> items_ ABSL_GUARDED_BY(mutex_);
};

template <typename Event>
class InboxSink final : public EventSink<Event> {
 public:
  explicit InboxSink(std::shared_ptr<Inbox> inbox) : inbox_(std::move(inbox)) {}
  void Write(Event event, bool) override { inbox_->Put(std::move(event)); }
  bool cancelled() const override { return false; }

 private:
  const std::shared_ptr<Inbox> inbox_;
};

// One attempt of one request. kAgain: the next attempt goes on with what is in the answer.
class AttemptRun {
 public:
  enum class End { kFinished, kCancelled, kAgain, kError };

  AttemptRun(const Placement& placement, DecodeNode* decode, const Attempt& attempt, Answer* answer)
      : placement_(placement), decode_(*decode), attempt_(attempt), answer_(*answer) {}

  End Run() {
    const bool local = placement_.prefill == nullptr;
    const absl::Status opened = decode_.Open(attempt_, local, std::make_shared<InboxSink<v1::DecodeEvent>>(inbox_));
    if (!opened.ok()) return Error(opened.ToString());
    End end = End::kError;
    for (bool going = true; going;) {
      const std::unique_ptr<Inbox::Item> item = inbox_->Take();
      if (item == nullptr) {
        end = Error("nothing happened within the deadline");
        break;
      }
      const std::optional<End> now = std::visit([this](const auto& event) { return On(event); }, *item);
      if (now.has_value()) end = *now;
      going = !now.has_value();
    }
    if (submitted_) placement_.prefill->Cancel(attempt_.key);
    decode_.Cancel(attempt_.key, local);
    return end;
  }

 private:
  using Outcome = std::optional<End>;

  Outcome On(const v1::PrefillEvent& event) {
    if (event.has_first_token()) return OnToken(event.first_token());
    if (event.has_finished()) return End::kFinished;
    prefill_over_ = event.has_handed_over() || event.has_failed();
    if (event.has_handed_over()) {
      answer_.cached_tokens = event.handed_over().cached_prompt_tokens();
      answer_.kv_bytes = event.handed_over().kv_bytes();
    }
    if (prefill_over_ && finished_) return End::kFinished;
    if (event.has_failed()) return OnFailed(event.failed());
    return std::nullopt;
  }
  Outcome On(const v1::DecodeEvent& event) {
    if (event.has_started() && placement_.prefill == nullptr) {
      answer_.cached_tokens = event.started().cached_prompt_tokens();
    }
    if (event.has_accepted() && placement_.prefill != nullptr) {
      submitted_ = true;
      placement_.prefill->Submit(attempt_, decode_.target(), std::make_shared<InboxSink<v1::PrefillEvent>>(inbox_));
    }
    for (const v1::TokenEvent& token : event.tokens().tokens()) {
      if (const Outcome outcome = OnToken(token); outcome.has_value()) return outcome;
    }
    if (event.has_finished()) {
      finished_ = true;
      // The tokens handed over are part of the answer. The decode worker may be faster than the report of the handover.
      return submitted_ && !prefill_over_ ? std::nullopt : Outcome(End::kFinished);
    }
    if (event.has_failed()) return OnFailed(event.failed());
    return std::nullopt;
  }
  Outcome OnToken(const v1::TokenEvent& event) {
    if (event.output_index() != answer_.tokens.size()) {
      return Error("token " + std::to_string(event.output_index()) + " came as number " +
                   std::to_string(answer_.tokens.size()));
    }
    answer_.tokens.push_back(event.token_id());
    if (event.has_logprobs()) answer_.logprobs.push_back(ToSampled(event));
    if (placement_.cancel != nullptr && placement_.cancel(answer_.tokens.size())) return End::kCancelled;
    return std::nullopt;
  }
  Outcome OnFailed(const v1::AttemptFailed& failed) {
    if (failed.cause() == v1::CAUSE_INVALID || failed.cause() == v1::CAUSE_INTERNAL) {
      return Error(failed.message());
    }
    if (failed.cause() == v1::CAUSE_PREEMPTED) ++answer_.preemptions;
    return End::kAgain;
  }
  End Error(std::string what) {
    answer_.error = std::move(what);
    return End::kError;
  }

  const Placement& placement_;
  DecodeNode& decode_;
  const Attempt& attempt_;
  Answer& answer_;
  bool submitted_ = false;
  bool prefill_over_ = false;
  bool finished_ = false;
  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
};

}  // namespace

SampledToken ToSampled(const v1::TokenEvent& event) {
  SampledToken token{.token = event.token_id(), .logprob = event.logprobs().chosen().logprob(), .top = {}};
  for (const v1::TokenLogprob& top : event.logprobs().top()) token.top.emplace_back(top.token_id(), top.logprob());
  return token;
}

Node::Node(std::string name, const NodeOptions& options, int max_bypass)
    : name_(std::move(name)),
      options_(options),
      registry_(std::make_shared<prometheus::Registry>()),
      metrics_(*registry_, "test", name_),
      model_(ValueOrDie(options.kv_groups ? LoadInGroups(options.model_folder, KvType::kF32)
                                          : Model::Load(options.model_folder,
                                                        {.threads = options.threads, .kv_dtype = KvType::kF32}))),
      transport_(ValueOrDie(InprocTransport::Create(Loopback(options.peer_timeout)))) {
  pool_ = ValueOrDie(
      PagePool::Create(model_->kv_layout(), options.pages, [this](size_t bytes) -> absl::StatusOr<PoolMemory> {
        return PoolMemory{ValueOrDie(transport_->AllocateRegion(bytes)).data, nullptr};
      }));
  compute_ = std::make_unique<Compute>(
      Compute::Parts{.model = model_.get(), .pool = pool_.get(), .metrics = &metrics_, .load = &load_},
      options.schedule,
      CapacityLedger::Limits{.max_sequences = options.schedule.max_sequences,
                             .max_bypass = max_bypass,
                             .growth_watermark_pages = options.growth_watermark_pages});
}

bool Node::BecomesEmpty() {
  const SteadyTime deadline = SteadyTime::Now() + kDeadline;
  while (pool_->counts().available() != pool_->pages_total()) {
    if (SteadyTime::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

PrefillNode::PrefillNode(std::string name, const NodeOptions& options)
    : Node(std::move(name), options, /*max_bypass=*/0) {
  sender_ = ValueOrDie(HandoffSender::Create(identity(), transport_.get(), pool_.get()));
  compute_->Start(sender_.get(), /*receiver=*/nullptr);
}

// As a worker's main: steps compute in the transport's memory.
PrefillNode::~PrefillNode() {
  compute_->Stop();
  transport_.reset();
}

void PrefillNode::Submit(const Attempt& attempt, const HandoffTarget& target, std::shared_ptr<PrefillSink> sink) {
  compute_->Post([=](Scheduler& scheduler) { scheduler.HandOver(attempt, target, ReportTo(sink)); });
}

void PrefillNode::Cancel(const AttemptKey& key) {
  compute_->Post([key](Scheduler& scheduler) { scheduler.Cancel(key); });
}

DecodeNode::DecodeNode(std::string name, const NodeOptions& options)
    : Node(std::move(name), options, options.max_bypass) {
  endpoints_ = ValueOrDie(HandoffEndpoints::Create(identity(), {}, transport_.get(), pool_.get(), compute_->capacity(),
                                                   compute_->ReceiverEvents()));
  compute_->Start(&endpoints_->sender(), &receiver());
}

DecodeNode::~DecodeNode() {
  compute_->Stop();
  transport_.reset();
}

absl::Status DecodeNode::Open(const Attempt& attempt, bool local, std::shared_ptr<DecodeSink> sink) {
  if (!local) {
    if (absl::Status opened = receiver().OpenAttempt(attempt.key, attempt.due); !opened.ok()) return opened;
  }
  compute_->Post([=](Scheduler& scheduler) {
    local ? scheduler.RunLocally(attempt, ReportTo(sink)) : scheduler.Receive(attempt, ReportTo(sink));
  });
  return absl::OkStatus();
}

void DecodeNode::Cancel(const AttemptKey& key, bool local) {
  if (!local) receiver().CloseAttempt(key);
  compute_->Post([key](Scheduler& scheduler) { scheduler.Cancel(key); });
}

void DecodeNode::Migrate(const MigrationOrder& order, std::shared_ptr<MigrationSink> sink) {
  compute_->Post([=](Scheduler& scheduler) { scheduler.Migrate(order, ReportTo(sink)); });
}

void DecodeNode::CancelMigration(const MigrationOrder& order) {
  compute_->Post([order](Scheduler& scheduler) { scheduler.CancelMigration(order); });
}

void DecodeNode::StartDraining() {
  compute_->Post([](Scheduler& scheduler) { scheduler.StartDraining(); });
}

bool Answer::SameBits(const Answer& other) const {
  if (tokens != other.tokens || logprobs.size() != other.logprobs.size()) return false;
  for (size_t i = 0; i < logprobs.size(); ++i) {
    const SampledToken& a = logprobs[i];
    const SampledToken& b = other.logprobs[i];
    if (a.token != b.token || std::bit_cast<uint32_t>(a.logprob) != std::bit_cast<uint32_t>(b.logprob)) return false;
    if (a.top.size() != b.top.size()) return false;
    for (size_t j = 0; j < a.top.size(); ++j) {
      if (a.top[j].first != b.top[j].first) return false;
      if (std::bit_cast<uint32_t>(a.top[j].second) != std::bit_cast<uint32_t>(b.top[j].second)) return false;
    }
  }
  return true;
}

Answer Serve(const Placement& placement, const Request& request) {
  static std::atomic<uint64_t> next_request{1};
  Answer answer;
  Attempt attempt;
  attempt.key.request = {next_request++, 0};
  attempt.due = absl::Now();
  attempt.prompt = request.prompt;
  attempt.sampling = request.sampling;
  if (request.shares_pages) attempt.page_hash_root = PageHashRoot("model", "", "");
  for (answer.attempts = 1; answer.attempts <= kMaxAttempts; ++answer.attempts) {
    attempt.key.attempt = answer.attempts;
    attempt.prior_output = answer.tokens;
    DecodeNode* decode = placement.decode[(answer.attempts - 1) % placement.decode.size()];
    const AttemptRun::End end = AttemptRun(placement, decode, attempt, &answer).Run();
    if (end != AttemptRun::End::kAgain) return answer;
  }
  answer.error = "out of attempts";
  return answer;
}

std::vector<Answer> ServeAll(const Placement& placement, const std::vector<Request>& requests) {
  std::vector<Answer> answers(requests.size());
  std::vector<std::thread> callers;
  for (size_t i = 0; i < requests.size(); ++i) {
    callers.emplace_back([&, i] { answers[i] = Serve(placement, requests[i]); });
  }
  for (std::thread& caller : callers) caller.join();
  return answers;
}

NodeOptions TinyNode(int pages) {
  return {.model_folder = TinyModel("llama_gqa").string(),
          .pages = pages,
          .schedule = {.token_budget = 512, .chunk_tokens = 512, .max_sequences = 64}};
}

std::vector<Answer> AnswersAlone(std::vector<Request> requests) {
  DecodeNode node("reference", TinyNode());
  std::vector<Answer> answers;
  for (Request& request : requests) {
    request.shares_pages = false;
    answers.push_back(Serve({.decode = {&node}}, request));
    EXPECT_EQ(answers.back().cached_tokens, 0u);
  }
  EXPECT_EQ(node.pool().counts().cached, 0u);
  return answers;
}

void ExpectSame(const std::vector<Answer>& answers, const std::vector<Answer>& reference) {
  ASSERT_EQ(answers.size(), reference.size());
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].error, "") << "request " << i;
    EXPECT_TRUE(answers[i].SameBits(reference[i])) << "request " << i << ", attempts " << answers[i].attempts;
  }
}

std::vector<Request> MixedRequests(int count, int vocab_size, int max_prompt, int max_output) {
  std::mt19937 random(20);
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  std::vector<Request> requests(count);
  for (int i = 0; i < count; ++i) {
    Request& request = requests[i];
    for (int t = 1 + below(max_prompt); t > 0; --t) request.prompt.push_back(below(vocab_size));
    SamplingParams& sampling = request.sampling;
    sampling.max_tokens = 1 + below(max_output);
    sampling.temperature = i % 2 == 0 ? 0.0f : 0.8f;
    sampling.seed = 1000 + i;
    if (i % 3 == 0) sampling.logprobs = below(6);
    if (i % 4 == 1) sampling.top_k = 20;
    if (i % 5 == 1) sampling.top_p = 0.9f;
    if (i % 7 == 1) sampling.min_p = 0.02f;
    if (i % 4 == 2) sampling.repetition_penalty = 1.2f;
    if (i % 6 == 3) sampling.presence_penalty = 0.5f;
    if (i % 6 == 4) sampling.frequency_penalty = 0.4f;
    if (i % 8 == 5) sampling.logit_bias = {{below(vocab_size), 2.0f}};
    if (i % 9 == 4) sampling.stop_token_ids = {below(vocab_size)};
    if (i % 9 == 4) sampling.min_tokens = 3;
  }
  return requests;
}

}  // namespace baton::testing
