// How many requests are in flight, and whether more may come. Thread-safe.
#pragma once

#include <cstddef>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/mutex.h"

namespace baton::router {

class Admission {
 public:
  // A request's place, given back when destroyed. Outlived by its Admission.
  class Ticket {
   public:
    Ticket() = default;
    explicit Ticket(Admission* admission) : admission_(admission) {}
    Ticket(Ticket&& other) noexcept : admission_(std::exchange(other.admission_, nullptr)) {}
    Ticket& operator=(Ticket&& other) noexcept {
      std::swap(admission_, other.admission_);
      return *this;
    }
    ~Ticket() {
      if (admission_ != nullptr) admission_->Leave();
    }

   private:
    Admission* admission_ = nullptr;
  };

  explicit Admission(size_t max_requests) : max_requests_(max_requests) {}

  // UNAVAILABLE while draining, RESOURCE_EXHAUSTED with the limit when full.
  absl::StatusOr<Ticket> Enter() {
    MutexLock lock(mutex_);
    if (draining_) return absl::UnavailableError("draining: this router takes no new requests");
    if (running_ >= max_requests_) {
      return absl::ResourceExhaustedError(absl::StrCat("max-requests: ", max_requests_, " requests are in flight"));
    }
    ++running_;
    return Ticket(this);
  }

  void StartDraining() {
    MutexLock lock(mutex_);
    draining_ = true;
  }

  // Requests that still run are about to be ended.
  void Stop() {
    MutexLock lock(mutex_);
    draining_ = true;
    stopped_ = true;
  }
  bool stopped() const {
    MutexLock lock(mutex_);
    return stopped_;
  }

  // Until no request is in flight; false if that took too long.
  bool WaitIdle(absl::Time deadline) {
    MutexLock lock(mutex_);
    while (running_ > 0) {
      if (!idle_.WaitUntil(mutex_, deadline)) return running_ == 0;
    }
    return true;
  }

  size_t running() const {
    MutexLock lock(mutex_);
    return running_;
  }

 private:
  void Leave() {
    MutexLock lock(mutex_);
    if (--running_ == 0) idle_.NotifyAll();
  }

  const size_t max_requests_;
  mutable Mutex mutex_;
  CondVar idle_;
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace baton::router
