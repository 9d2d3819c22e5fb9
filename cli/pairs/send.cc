// SPDX-License-Identifier: Apache-2.0
#include "cli/pairs/send.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "cli/client.h"
#include "cli/console/interrupt.h"
#include "common/grpc.h"
#include "common/mutex.h"

namespace baton {
namespace {

// The next request to send, and the calls that an interrupt cancels. Thread-safe.
class Sending {
 public:
  explicit Sending(size_t requests) : requests_(requests) {}

  // Returns the index of the next request, or the number of requests if there is none to send.
  size_t Next() {
    MutexLock lock(mutex_);
    return stopped_ ? requests_ : std::min(next_++, requests_);
  }
  void Begin(grpc::ClientContext& call) {
    MutexLock lock(mutex_);
    calls_.insert(&call);
    if (stopped_) call.TryCancel();
  }
  void End(grpc::ClientContext& call) {
    MutexLock lock(mutex_);
    calls_.erase(&call);
  }
  void Stop() {
    MutexLock lock(mutex_);
    stopped_ = true;
    for (grpc::ClientContext* call : calls_) call->TryCancel();
  }
  bool stopped() const {
    MutexLock lock(mutex_);
    return stopped_;
  }

 private:
  const size_t requests_;
  mutable Mutex mutex_;
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mutex_);
};

bool IsDeadline(const grpc::Status& status) { return status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED; }

SentAnswer SendOne(Client& client, const v1::GenerateRequest& request, const SendOptions& options, Sending& sending) {
  SentAnswer sent;
  const absl::Duration left = options.deadline - SteadyTime::Now();
  if (left <= absl::ZeroDuration()) return sent;
  grpc::ClientContext context;
  const absl::Duration limit = std::min(left, options.request_timeout);
  if (limit < absl::InfiniteDuration()) context.set_deadline(GrpcDeadline(limit));
  sending.Begin(context);
  const auto reader = client.inference().Generate(&context, request);
  v1::GenerateResponse response;
  bool has_finish = false;
  while (reader->Read(&response)) {
    if (response.has_chunk()) sent.answer.Add(response.chunk());
    if (!response.has_finish()) continue;
    has_finish = true;
    sent.finish = response.finish();
    sent.answer.Add(sent.finish);
  }
  const grpc::Status status = reader->Finish();
  sending.End(context);
  if (has_finish && IsComplete(has_finish, status)) {
    sent.state = SentAnswer::State::kAnswered;
  } else if (!sending.stopped() && !(left <= options.request_timeout && IsDeadline(status))) {
    sent.state = SentAnswer::State::kFailed;
    sent.reason = absl::StrCat(absl::StatusCodeToString(FromGrpc(status).code()), ": ",
                               status.ok() ? "the stream ended without its finish message"
                                           : Reason(status, absl::FormatDuration(options.request_timeout)));
  }
  return sent;
}

}  // namespace

std::vector<SentAnswer> Send(Client& client, std::span<const v1::GenerateRequest> requests, const SendOptions& options,
                             Interrupt& interrupt) {
  std::vector<SentAnswer> answers(requests.size());
  Sending sending(requests.size());
  const Interrupt::Scope scope(interrupt, [&sending] { sending.Stop(); });
  const auto work = [&] {
    for (size_t i = sending.Next(); i < requests.size(); i = sending.Next()) {
      answers[i] = SendOne(client, requests[i], options, sending);
    }
  };
  std::vector<std::thread> others;
  const auto threads = std::min(requests.size(), static_cast<size_t>(std::max(options.at_once, 1)));
  for (size_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  return answers;
}

}  // namespace baton
