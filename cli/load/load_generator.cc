// SPDX-License-Identifier: Apache-2.0
#include "cli/load/load_generator.h"

#include <poll.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "cli/console/interrupt.h"
#include "cli/load/run_progress.h"
#include "common/event_fd.h"
#include "common/mutex.h"
#include "common/steady_time.h"

namespace baton {
namespace {

// One turn of a conversation that is to be sent, or has been.
struct Turn {
  SteadyTime arrival;
  int conversation = 0;
  int number = 0;  // in its conversation, from 0
  LoadRequest request;
};

// A turn whose answer another turn follows.
struct Answered {
  Turn turn;
  SteadyTime end;
  std::vector<int32_t> answer;
};

// Sends the turns of one run. Run's thread sends; the target's threads report through observers.
class LoadRun {
 public:
  LoadRun(LoadTarget& target, const Workload& workload, const LoadOptions& options, RunProgress* progress)
      : target_(target), workload_(workload), options_(options), progress_(progress), arrivals_(Arrivals(workload)) {}

  LoadResult Run(Interrupt& interrupt);

 private:
  class Observer;

  bool is_closed() const { return options_.concurrency > 0; }
  bool IsMeasured(int conversation) const { return conversation >= options_.warmup; }

  // Makes the turns that follow answers. Long prompts take time, which the target's threads do not have.
  void MakeLaterTurns();
  // Returns when to send next: the infinite future if the next turn depends on a running request, nothing if there is
  // no next turn.
  std::optional<SteadyTime> NextTime();
  // Removes the turn for which NextTime gave the time.
  Turn TakeNext();
  bool MayBegin() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsLaterTurnNext() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sleeps until `time`, an end of a request or an interrupt.
  void Sleep(SteadyTime time, const Interrupt& interrupt);
  void Send(Turn turn);
  void OnEnd(Turn turn, RequestEnd end);
  // Counts the turns after `last` as skipped.
  void EndConversation(const Turn& last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  RequestOutcome Outcome(const Turn& turn, RequestEnd end) const;

  LoadTarget& target_;
  const Workload& workload_;
  const LoadOptions& options_;
  RunProgress* const progress_;
  const std::vector<absl::Duration> arrivals_;
  SteadyTime start_;
  SteadyTime measured_start_;
  int next_conversation_ = 0;
  std::optional<Turn> prepared_;  // the first turn of next_conversation_, made before its time
  EventFd ended_;

  Mutex mutex_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;                              // requests
  int conversations_ ABSL_GUARDED_BY(mutex_) = 0;                        // begun and not over
  std::multimap<SteadyTime, Turn> later_turns_ ABSL_GUARDED_BY(mutex_);  // by arrival
  std::vector<Answered> answered_ ABSL_GUARDED_BY(mutex_);               // not yet in later_turns_
  LoadResult result_ ABSL_GUARDED_BY(mutex_);
};

class LoadRun::Observer final : public RequestObserver {
 public:
  Observer(LoadRun& run, Turn turn) : run_(run), turn_(std::move(turn)) {}

  void OnTokens(SteadyTime at, int tokens) override {
    if (run_.progress_ == nullptr) return;
    if (!has_tokens_) run_.progress_->FirstToken(at - turn_.arrival);
    has_tokens_ = true;
    run_.progress_->Tokens(tokens);
  }
  void OnEnd(RequestEnd end) override { run_.OnEnd(std::move(turn_), std::move(end)); }

 private:
  LoadRun& run_;
  Turn turn_;
  bool has_tokens_ = false;
};

bool LoadRun::MayBegin() const { return prepared_ && (!is_closed() || conversations_ < options_.concurrency); }

bool LoadRun::IsLaterTurnNext() const {
  return !later_turns_.empty() && (!MayBegin() || later_turns_.begin()->first < prepared_->arrival);
}

void LoadRun::MakeLaterTurns() {
  std::vector<Answered> answered;
  {
    MutexLock lock(mutex_);
    answered.swap(answered_);
  }
  for (Answered& entry : answered) {
    Turn next = {.arrival = entry.end + workload_.think_time,
                 .conversation = entry.turn.conversation,
                 .number = entry.turn.number + 1,
                 .request = NextTurn(workload_, entry.turn.conversation, entry.turn.number + 1,
                                     entry.turn.request.prompt, entry.answer)};
    const SteadyTime arrival = next.arrival;
    MutexLock lock(mutex_);
    later_turns_.emplace(arrival, std::move(next));
  }
}

std::optional<SteadyTime> LoadRun::NextTime() {
  if (!prepared_ && next_conversation_ < static_cast<int>(arrivals_.size())) {
    prepared_ = Turn{.arrival = is_closed() ? SteadyTime::InfinitePast() : start_ + arrivals_[next_conversation_],
                     .conversation = next_conversation_,
                     .request = MakeRequest(workload_, next_conversation_)};
    ++next_conversation_;
  }
  MakeLaterTurns();
  MutexLock lock(mutex_);
  if (IsLaterTurnNext()) return later_turns_.begin()->first;
  if (MayBegin()) return prepared_->arrival;
  // Every conversation that is not over has a running request, an answer that a turn follows, or a later turn.
  const bool is_over = running_ == 0 && answered_.empty();
  return is_over ? std::nullopt : std::optional(SteadyTime::InfiniteFuture());
}

Turn LoadRun::TakeNext() {
  MutexLock lock(mutex_);
  if (IsLaterTurnNext()) return std::move(later_turns_.extract(later_turns_.begin()).mapped());
  Turn turn = *std::move(prepared_);
  prepared_.reset();
  if (is_closed()) turn.arrival = SteadyTime::Now();
  ++conversations_;
  return turn;
}

void LoadRun::Sleep(SteadyTime time, const Interrupt& interrupt) {
  const absl::Duration left = std::clamp(time - SteadyTime::Now(), absl::ZeroDuration(), absl::Hours(1));
  const timespec timeout = absl::ToTimespec(left);
  pollfd fds[] = {{interrupt.fd(), POLLIN, 0}, {ended_.fd(), POLLIN, 0}};
  ppoll(fds, 2, &timeout, nullptr);
  ended_.Drain();
}

void LoadRun::Send(Turn turn) {
  if (turn.number == 0 && turn.conversation == options_.warmup) measured_start_ = turn.arrival;
  {
    MutexLock lock(mutex_);
    if (!is_closed() && running_ >= options_.max_in_flight) {
      if (IsMeasured(turn.conversation)) ++result_.not_sent;
      EndConversation(turn);
      return;
    }
    ++running_;
  }
  if (progress_ != nullptr) progress_->Sent();
  LoadRequest request = turn.request;
  const SteadyTime deadline = turn.arrival + options_.request_timeout;
  target_.Start(std::move(request), deadline, std::make_shared<Observer>(*this, std::move(turn)));
}

void LoadRun::EndConversation(const Turn& last) {
  if (IsMeasured(last.conversation)) result_.skipped_turns += workload_.turns - last.number - 1;
  --conversations_;
}

RequestOutcome LoadRun::Outcome(const Turn& turn, RequestEnd end) const {
  RequestOutcome outcome = {
      .error = std::move(end.error),
      .reason = std::move(end.reason),
      .start = turn.arrival - measured_start_,
      .turn = turn.number,
      .wanted_tokens = turn.request.output_tokens,
      .prompt_tokens = end.prompt_tokens > 0 ? end.prompt_tokens : static_cast<uint32_t>(turn.request.prompt.size()),
      .cached_tokens = end.cached_tokens,
      .arrivals = {},
      .total = end.at - turn.arrival};
  outcome.arrivals.reserve(end.arrivals.size());
  for (const TokenArrival& arrival : end.arrivals) {
    outcome.arrivals.push_back({.at = arrival.at - turn.arrival, .tokens = arrival.tokens});
  }
  return outcome;
}

void LoadRun::OnEnd(Turn turn, RequestEnd end) {
  const bool succeeded = end.error.empty();
  if (progress_ != nullptr) progress_->Ended(succeeded);
  const bool measured = IsMeasured(turn.conversation);
  const SteadyTime ended_at = end.at;
  std::vector<int32_t> answer = std::move(end.answer);
  const bool answer_known = static_cast<int>(answer.size()) >= turn.request.output_tokens;
  // Under the lock to its end: with the last request, Run returns as soon as it can take the lock.
  MutexLock lock(mutex_);
  if (measured) result_.outcomes.push_back(Outcome(turn, std::move(end)));
  --running_;
  if (succeeded && turn.number + 1 < workload_.turns) {
    if (measured && !answer_known) ++result_.unknown_answers;
    answered_.push_back({.turn = std::move(turn), .end = ended_at, .answer = std::move(answer)});
  } else {
    EndConversation(turn);
  }
  ended_.Signal();
}

LoadResult LoadRun::Run(Interrupt& interrupt) {
  if (progress_ != nullptr) progress_->Begin(static_cast<int64_t>(arrivals_.size()) * workload_.turns);
  start_ = SteadyTime::Now();
  measured_start_ = start_;
  while (!interrupt.triggered()) {
    const std::optional<SteadyTime> time = NextTime();
    if (!time) break;
    if (*time > SteadyTime::Now()) {
      Sleep(*time, interrupt);  // an end may bring a turn that comes before `time`: look again
    } else {
      Send(TakeNext());
    }
  }
  // The interrupt's own cancellation may have missed a request that started at the same time.
  if (interrupt.triggered()) target_.CancelAll();
  while (true) {
    {
      MutexLock lock(mutex_);
      if (running_ == 0) break;
    }
    pollfd fd = {ended_.fd(), POLLIN, 0};
    ppoll(&fd, 1, nullptr, nullptr);
    ended_.Drain();
  }
  MutexLock lock(mutex_);
  result_.warmup_duration = measured_start_ - start_;
  result_.duration = SteadyTime::Now() - measured_start_;
  return std::move(result_);
}

}  // namespace

LoadResult GenerateLoad(LoadTarget& target, const Workload& workload, const LoadOptions& options, Interrupt& interrupt,
                        RunProgress* progress) {
  LoadRun run(target, workload, options, progress);
  const Interrupt::Scope scope(interrupt, [&target] { target.CancelAll(); });
  return run.Run(interrupt);
}

}  // namespace baton
