// SPDX-License-Identifier: Apache-2.0
// Ctrl-C as an event: a flag, a file descriptor to poll, and a callback that cancels the running call. Thread-safe.
#pragma once

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "common/event_fd.h"
#include "common/mutex.h"

namespace baton {

class Interrupt {
 public:
  void Trigger();
  bool triggered() const;
  // Forgets a trigger, so that a chat goes on after Ctrl-C.
  void Reset();
  // Readable while triggered.
  int fd() const { return event_.fd(); }
  // Waits until `input_fd` can be read, or has ended. Returns false when an interrupt comes first.
  bool WaitForInput(int input_fd) const;

  // While a scope lives, Trigger calls `cancel`. A scope that begins after the trigger calls `cancel` at once. There is
  // one scope at a time. Once the destructor has returned, `cancel` neither runs nor will be called.
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
  EventFd event_;
  mutable Mutex mutex_;
  bool triggered_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> cancel_ ABSL_GUARDED_BY(mutex_);
};

// Turns SIGINT into Interrupt::Trigger. Construct the watcher before any other thread starts: it blocks the signal for
// the process.
class SignalWatcher {
 public:
  explicit SignalWatcher(Interrupt& interrupt);
  ~SignalWatcher();

 private:
  EventFd stop_;
  std::thread thread_;
};

}  // namespace baton
