// SPDX-License-Identifier: Apache-2.0
// Calls a function at equal times on a thread of its own, until destroyed.
#pragma once

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/mutex.h"

namespace baton {

class Ticker {
 public:
  // The first call comes at once. A call that takes longer than `interval` delays the calls after it.
  Ticker(absl::Duration interval, std::function<void()> function);
  ~Ticker();  // waits for the running call
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  void Run();

  const absl::Duration interval_;
  const std::function<void()> function_;
  Mutex mutex_;
  CondVar wake_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace baton
