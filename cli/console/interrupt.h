// Ctrl-C as an event: a flag, a file descriptor to poll, and a callback that cancels what is running. Thread-safe.
#pragma once

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"

namespace baton {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  void Trigger();
  bool triggered() const;
  // Forgets a trigger: a chat goes on after its answer was cancelled.
  void Reset();
  // Readable while triggered.
  int fd() const { return fd_; }

  // While it lives, `cancel` is called by Trigger (at once when already triggered). One at a time; once the destructor
  // has returned, `cancel` is not running and will not be called.
  class Scope {
   public:
    Scope(Interrupt& interrupt, std::function<void()> cancel);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Interrupt& interrupt_;
  };

 private:
  const int fd_;
  mutable Mutex mutex_;
  bool triggered_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> cancel_ ABSL_GUARDED_BY(mutex_);
};

// Turns SIGINT into Interrupt::Trigger. Blocks the signal for the process: construct it before any thread starts.
class SignalWatcher {
 public:
  explicit SignalWatcher(Interrupt& interrupt);
  ~SignalWatcher();

 private:
  const int stop_fd_;
  std::thread thread_;
};

}  // namespace baton
