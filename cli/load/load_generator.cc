// SPDX-License-Identifier: Apache-2.0
#include "cli/load/load_generator.h"

#include <poll.h>

#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "cli/client.h"
#include "cli/console/interrupt.h"
#include "common/grpc.h"
#include "common/mutex.h"
#include "common/steady_time.h"

namespace baton {
namespace {

class Call;

// Holds the calls in flight and the outcomes of the calls that ended. Waits are bounded: each call has a deadline.
// Thread-safe.
class Calls {
 public:
  // Returns false when `limit` calls are in flight already.
  bool TryAdd(const std::shared_ptr<Call>& call, int limit) {
    MutexLock lock(mutex_);
    if (running_.size() >= static_cast<size_t>(limit)) return false;
    running_.insert(call);
    return true;
  }

  // Without an outcome, the call is not measured.
  void End(const std::shared_ptr<Call>& call, std::optional<RequestOutcome> outcome) {
    MutexLock lock(mutex_);
    running_.erase(call);
    if (outcome) outcomes_.push_back(*std::move(outcome));
    ended_.NotifyAll();
  }

  void CancelAll();

  // Waits until fewer than `limit` calls are in flight.
  void WaitForLessThan(int limit) {
    MutexLock lock(mutex_);
    while (running_.size() >= static_cast<size_t>(limit)) ended_.Wait(mutex_);
  }

  std::vector<RequestOutcome> WaitForAll() {
    MutexLock lock(mutex_);
    while (!running_.empty()) ended_.Wait(mutex_);
    return std::move(outcomes_);
  }

 private:
  Mutex mutex_;
  CondVar ended_;
  absl::flat_hash_set<std::shared_ptr<Call>> running_ ABSL_GUARDED_BY(mutex_);
  std::vector<RequestOutcome> outcomes_ ABSL_GUARDED_BY(mutex_);
};

// One request. `calls` holds it until its stream has ended.
class Call final : public grpc::ClientReadReactor<v1::GenerateResponse>, public std::enable_shared_from_this<Call> {
 public:
  Call(v1::GenerateRequest request, SteadyTime arrival, absl::Duration timeout, bool measured, Calls& calls)
      : request_(std::move(request)), arrival_(arrival), timeout_(timeout), measured_(measured), calls_(calls) {
    context_.set_deadline(GrpcDeadline(arrival + timeout - SteadyTime::Now()));
  }

  void Start(v1::Inference::Stub& stub) {
    stub.async()->Generate(&context_, &request_, this);
    StartRead(&response_);
    StartCall();
  }

  void Cancel() { context_.TryCancel(); }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (const int tokens = response_.chunk().token_ids_size(); tokens > 0) {
      outcome_.arrivals.push_back({.at = SteadyTime::Now() - arrival_, .tokens = tokens});
    }
    if (response_.has_finish()) {
      has_finish_ = true;
      outcome_.prompt_tokens = response_.finish().usage().prompt_tokens();
      outcome_.cached_tokens = response_.finish().usage().cached_prompt_tokens();
    }
    StartRead(&response_);
  }

  void OnDone(const grpc::Status& status) override {
    if (!IsComplete(has_finish_, status)) {
      outcome_.code = status.error_code();
      outcome_.reason = Reason(status, TimeoutWords(timeout_));
    }
    outcome_.total = SteadyTime::Now() - arrival_;
    const std::shared_ptr<Call> self = shared_from_this();  // End() drops the reference that `calls` holds
    calls_.End(self, measured_ ? std::optional(std::move(outcome_)) : std::nullopt);
  }

 private:
  const v1::GenerateRequest request_;
  const SteadyTime arrival_;
  const absl::Duration timeout_;
  const bool measured_;
  Calls& calls_;
  grpc::ClientContext context_;
  v1::GenerateResponse response_;
  bool has_finish_ = false;
  RequestOutcome outcome_;
};

void Calls::CancelAll() {
  std::vector<std::shared_ptr<Call>> running;
  {
    MutexLock lock(mutex_);
    running.assign(running_.begin(), running_.end());
  }
  // Without the lock: Cancel may run the call's OnDone on this thread, and OnDone takes the lock.
  for (const std::shared_ptr<Call>& call : running) call->Cancel();
}

// Sleeps until `time`. Returns false when an interrupt comes first.
bool SleepUntil(SteadyTime time, const Interrupt& interrupt) {
  while (!interrupt.triggered()) {
    const absl::Duration left = time - SteadyTime::Now();
    if (left <= absl::ZeroDuration()) return true;
    const timespec timeout = absl::ToTimespec(left);
    pollfd fd = {interrupt.fd(), POLLIN, 0};
    ppoll(&fd, 1, &timeout, nullptr);
  }
  return false;
}

}  // namespace

LoadResult GenerateLoad(Client& client, const Workload& workload, const LoadOptions& options, Interrupt& interrupt) {
  Calls calls;
  LoadResult result;
  const Interrupt::Scope scope(interrupt, [&calls] { calls.CancelAll(); });
  const std::vector<absl::Duration> arrivals = Arrivals(workload);
  const bool closed = options.concurrency > 0;
  const SteadyTime start = SteadyTime::Now();
  SteadyTime measured_start = start;
  for (size_t i = 0; i < arrivals.size(); ++i) {
    v1::GenerateRequest request = MakeRequest(workload, static_cast<int>(i));
    if (closed) calls.WaitForLessThan(options.concurrency);
    const SteadyTime arrival = closed ? SteadyTime::Now() : start + arrivals[i];
    if (!SleepUntil(arrival, interrupt)) break;
    const bool measured = i >= static_cast<size_t>(options.warmup);
    if (i == static_cast<size_t>(options.warmup)) measured_start = arrival;
    const auto call = std::make_shared<Call>(std::move(request), arrival, options.request_timeout, measured, calls);
    if (calls.TryAdd(call, closed ? options.concurrency : options.max_in_flight)) {
      call->Start(client.inference());
    } else if (measured) {
      ++result.not_sent;
    }
  }
  // The interrupt's own cancellation may have missed a call that started at the same time.
  if (interrupt.triggered()) calls.CancelAll();
  result.outcomes = calls.WaitForAll();
  result.duration = SteadyTime::Now() - measured_start;
  return result;
}

}  // namespace baton
