// SPDX-License-Identifier: Apache-2.0
// An EventSink over a server-streaming call of gRPC's callback API.
//
// Two objects, because either of call and attempt may end first. gRPC owns the reactor from the start of the call until
// OnDone. The scheduler shares the EventStream, which outlives the reactor.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"
#include "worker/event_sink.h"

namespace baton {

template <typename Event>
class EventStream final : public EventSink<Event> {
 public:
  // Joins `next` into `last`, an event not sent yet, and returns true; or returns false. Bounds the backlog of a slow
  // caller.
  using Merge = bool (*)(Event& last, Event& next);

  explicit EventStream(Merge merge = nullptr) : merge_(merge) {}

  // Returns the reactor that the service's method returns. `on_cancel` runs, on a gRPC thread, if the call ends before
  // the last event was written: cancelled, deadline passed, connection gone.
  static grpc::ServerWriteReactor<Event>* Serve(std::shared_ptr<EventStream> stream, std::function<void()> on_cancel) {
    return new Reactor(std::move(stream), std::move(on_cancel));
  }

  void Write(Event event, bool last) override {
    Finishing finishing;
    MutexLock lock(mutex_);
    if (closed_) return;
    closed_ = last;
    // The front event is in flight while writing_: it must not change.
    const bool mergeable = merge_ != nullptr && queue_.size() > (writing_ ? 1u : 0u);
    if (!mergeable || !merge_(queue_.back(), event)) queue_.push_back(std::move(event));
    Advance(finishing);
  }

  bool cancelled() const override { return cancelled_; }

  // Returns whether every event was sent.
  bool idle() {
    MutexLock lock(mutex_);
    return queue_.empty();
  }

 private:
  class Reactor final : public grpc::ServerWriteReactor<Event> {
   public:
    Reactor(std::shared_ptr<EventStream> stream, std::function<void()> on_cancel)
        : stream_(std::move(stream)), on_cancel_(std::move(on_cancel)) {
      stream_->Attach(this);
    }
    void OnWriteDone(bool) override { stream_->WriteDone(); }
    void OnCancel() override {
      if (stream_->Cancel()) on_cancel_();
    }
    void OnDone() override {
      stream_->Detach();
      delete this;
    }

   private:
    const std::shared_ptr<EventStream> stream_;
    const std::function<void()> on_cancel_;
  };

  // Finishes the call, if it is to be finished, after the lock: to be declared before the lock. gRPC may run OnDone
  // within Finish.
  struct Finishing {
    ~Finishing() {
      if (reactor != nullptr) reactor->Finish(status);
    }
    Reactor* reactor = nullptr;
    grpc::Status status = grpc::Status::OK;
  };

  void Attach(Reactor* reactor) {
    Finishing finishing;
    MutexLock lock(mutex_);
    reactor_ = reactor;
    Advance(finishing);
  }

  // Returns whether the attempt still runs, so that its owner must be told.
  bool Cancel() {
    cancelled_ = true;
    Finishing finishing{.status = grpc::Status::CANCELLED};
    MutexLock lock(mutex_);
    if (!std::exchange(finish_called_, true)) finishing.reactor = reactor_;
    return !std::exchange(closed_, true);
  }

  void WriteDone() {
    Finishing finishing;
    MutexLock lock(mutex_);
    writing_ = false;
    queue_.pop_front();
    Advance(finishing);
  }

  void Detach() {
    MutexLock lock(mutex_);
    reactor_ = nullptr;
    closed_ = true;
    queue_.clear();
  }

  // Starts the next write, or lets the call be finished. OnDone never runs within a write.
  void Advance(Finishing& finishing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (reactor_ == nullptr || writing_ || finish_called_) return;
    if (!queue_.empty()) {
      writing_ = true;
      reactor_->StartWrite(&queue_.front());
    } else if (closed_) {
      finish_called_ = true;
      finishing.reactor = reactor_;
    }
  }

  const Merge merge_;
  std::atomic<bool> cancelled_ = false;
  Mutex mutex_;
  Reactor* reactor_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::deque<Event> queue_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;  // queue_.front() is in flight
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;   // no more events are accepted
  bool finish_called_ ABSL_GUARDED_BY(mutex_) = false;
};

// Refuses a call before it starts.
template <typename Event>
grpc::ServerWriteReactor<Event>* RefuseStream(const grpc::Status& status) {
  class Refusal final : public grpc::ServerWriteReactor<Event> {
   public:
    explicit Refusal(const grpc::Status& why) { this->Finish(why); }
    void OnDone() override { delete this; }
  };
  return new Refusal(status);
}

}  // namespace baton
