// SPDX-License-Identifier: Apache-2.0
// Counts the requests in flight and refuses more than a limit. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/mutex.h"
#include "common/steady_time.h"

namespace baton::router {

class Admission {
 public:
  // A request's place, freed by the destructor. The Admission must outlive its tickets.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Admission* admission, uint64_t number) : admission_(admission), number_(number) {}
    Ticket(Ticket&& other) noexcept : admission_(std::exchange(other.admission_, nullptr)), number_(other.number_) {}
    Ticket& operator=(Ticket&& other) noexcept {
      std::swap(admission_, other.admission_);
      std::swap(number_, other.number_);
      return *this;
    }
    ~Ticket() {
      if (admission_ != nullptr) admission_->Leave(number_);
    }

    bool held() const { return admission_ != nullptr; }
    // Calls `end` once if the admission stops while the ticket is held; at once if the admission has stopped before.
    void WhenStopped(std::function<void()> end) { admission_->WhenStopped(number_, std::move(end)); }

   private:
    Admission* admission_ = nullptr;
    uint64_t number_ = 0;
  };

  explicit Admission(size_t max_requests) : max_requests_(max_requests) {}

  // UNAVAILABLE: draining. RESOURCE_EXHAUSTED names the limit.
  absl::StatusOr<Ticket> Enter() {
    MutexLock lock(mutex_);
    if (draining_) return absl::UnavailableError("the router is draining and takes no new requests");
    if (running_.size() >= max_requests_) {
      return absl::ResourceExhaustedError(absl::StrCat("max-requests: ", max_requests_, " requests are in flight"));
    }
    running_.emplace(next_, nullptr);
    return Ticket(this, next_++);
  }

  void StartDraining() {
    MutexLock lock(mutex_);
    draining_ = true;
  }

  // Ends all requests in flight.
  void Stop() {
    std::vector<std::function<void()>> ends;
    {
      MutexLock lock(mutex_);
      draining_ = true;
      stopped_ = true;
      for (auto& [number, end] : running_) {
        if (end) ends.push_back(std::exchange(end, nullptr));
      }
    }
    for (const std::function<void()>& end : ends) end();
  }
  bool stopped() const {
    MutexLock lock(mutex_);
    return stopped_;
  }

  // Waits until no request is in flight; false if a request is still in flight at `deadline`.
  bool WaitIdle(SteadyTime deadline) {
    MutexLock lock(mutex_);
    while (!running_.empty()) {
      if (!idle_.WaitUntil(mutex_, deadline)) return running_.empty();
    }
    return true;
  }

  size_t running() const {
    MutexLock lock(mutex_);
    return running_.size();
  }

 private:
  void Leave(uint64_t number) {
    MutexLock lock(mutex_);
    running_.erase(number);
    if (running_.empty()) idle_.NotifyAll();
  }
  void WhenStopped(uint64_t number, std::function<void()> end) {
    {
      MutexLock lock(mutex_);
      if (!stopped_) {
        running_[number] = std::move(end);
        return;
      }
    }
    end();
  }

  const size_t max_requests_;
  mutable Mutex mutex_;
  CondVar idle_;
  // By ticket: the function that ends the request.
  absl::flat_hash_map<uint64_t, std::function<void()>> running_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace baton::router
