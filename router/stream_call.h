// SPDX-License-Identifier: Apache-2.0
// Server-streaming calls to workers on gRPC's callback API, and groups of calls that are cancelled together.
//
// For the router's .cc files only (gRPC).
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_callback.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/grpc.h"
#include "common/mutex.h"
#include "common/steady_time.h"

namespace baton::router {

// The open calls to one worker, or of one kind. CancelAll ends the calls without the worker's help. Thread-safe. Calls
// share their group, so that the group outlives them.
class CallGroup {
 public:
  // Adds a call; `call` keeps `context` alive. False after CancelAll: the caller must end the call at once.
  bool Add(grpc::ClientContext* context, std::weak_ptr<void> call) {
    MutexLock lock(mutex_);
    calls_.emplace(context, std::move(call));
    return !cancelled_;
  }
  void Remove(grpc::ClientContext* context) {
    MutexLock lock(mutex_);
    calls_.erase(context);
    if (calls_.empty()) empty_.NotifyAll();
  }
  // Cancels all calls. Add then refuses further calls.
  void CancelAll() {
    std::vector<std::pair<grpc::ClientContext*, std::shared_ptr<void>>> open;
    {
      MutexLock lock(mutex_);
      cancelled_ = true;
      for (const auto& [context, call] : calls_) {
        if (std::shared_ptr<void> alive = call.lock()) open.emplace_back(context, std::move(alive));
      }
    }
    // Unlocked: a call's last reaction removes the call from the group and may run on this thread.
    for (const auto& [context, call] : open) context->TryCancel();
  }
  // Returns whether no call is open.
  bool empty() {
    MutexLock lock(mutex_);
    return calls_.empty();
  }
  // Waits until every call has had its last reaction; false if a call is still open at `deadline`.
  bool WaitEmpty(SteadyTime deadline) {
    MutexLock lock(mutex_);
    while (!calls_.empty()) {
      if (!empty_.WaitUntil(mutex_, deadline)) return calls_.empty();
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar empty_;
  absl::flat_hash_map<grpc::ClientContext*, std::weak_ptr<void>> calls_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

// A call keeps itself alive until its last reaction. on_event and on_end run on gRPC's threads, one at a time, on_end
// last. The call releases both functions after on_end.
template <typename Request, typename Response>
class StreamCall : public grpc::ClientReadReactor<Response> {
 public:
  using OnEvent = std::function<void(Response)>;
  using OnEnd = std::function<void(absl::Status)>;
  // A stub's async method, bound.
  using Method = std::function<void(grpc::ClientContext*, const Request*, grpc::ClientReadReactor<Response>*)>;

  struct Options {
    std::shared_ptr<CallGroup> group;
    absl::Duration timeout = absl::InfiniteDuration();
  };

  static std::shared_ptr<StreamCall> Start(Options options, Request request, const Method& method, OnEvent on_event,
                                           OnEnd on_end) {
    std::shared_ptr<StreamCall> call(
        new StreamCall(std::move(options), std::move(request), std::move(on_event), std::move(on_end)));
    call->self_ = call;
    const bool open = call->options_.group->Add(&call->context_, call);
    method(&call->context_, &call->request_, call.get());
    call->StartRead(&call->response_);
    call->StartCall();
    if (!open) call->Cancel();
    return call;
  }

  // Cancels the call, which still ends with on_end. Thread-safe, at any time.
  void Cancel() { context_.TryCancel(); }

 private:
  StreamCall(Options options, Request request, OnEvent on_event, OnEnd on_end)
      : options_(std::move(options)),
        request_(std::move(request)),
        on_event_(std::move(on_event)),
        on_end_(std::move(on_end)) {
    if (options_.timeout < absl::Hours(24 * 365)) {
      context_.set_deadline(GrpcDeadline(options_.timeout));
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    on_event_(std::move(response_));
    response_.Clear();
    this->StartRead(&response_);
  }

  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<StreamCall> self = std::move(self_);
    on_end_(FromGrpc(status));
    on_event_ = nullptr;
    on_end_ = nullptr;
    options_.group->Remove(&context_);
  }

  const Options options_;
  const Request request_;
  OnEvent on_event_;
  OnEnd on_end_;
  grpc::ClientContext context_;
  Response response_;
  std::shared_ptr<StreamCall> self_;
};

}  // namespace baton::router
