// The compute threads of one backend: the caller and threads() - 1 workers that all run the same function at the same
// time.
//
// Which thread does what is the function's own rule; the pool only runs it and waits. Threads without work spin
// for a moment, as the next piece usually follows at once, then block, so that several processes can share few CPUs;
// where there are fewer CPUs than threads they block right away.
//
// One Run at a time, from any one thread. The destructor joins the workers.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/mutex.h"

namespace baton::cpu {

// Items [begin, end) of `count` that fall to one of `threads` threads: equal shares, neighbours together.
struct Share {
  int begin = 0;
  int end = 0;
};
constexpr Share ShareOf(int count, int thread, int threads) {
  return {static_cast<int>(int64_t{count} * thread / threads),
          static_cast<int>(int64_t{count} * (thread + 1) / threads)};
}

class ThreadPool {
 public:
  // Thread i runs on cpus[i], the caller (thread 0) included, if any are given. INVALID_ARGUMENT for a bad count or a
  // CPU this process may not use; RESOURCE_EXHAUSTED when a thread cannot be started.
  static absl::StatusOr<std::unique_ptr<ThreadPool>> Create(int threads, std::vector<int> cpus);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }
  // Calls work(thread) for each thread in [0, threads()) at once; returns when all have.
  void Run(absl::FunctionRef<void(int thread)> work);
  // How long callers have waited in Run for the workers after their own share was done, in all. Not while Run runs.
  absl::Duration waited() const { return absl::Nanoseconds(waited_ns_); }

 private:
  ThreadPool(int threads, std::vector<int> cpus, bool spin);
  void RunWorker(int thread);
  void AwaitStart(uint64_t seen);
  void AwaitDone();
  void PinCaller();

  const int threads_;
  const std::vector<int> cpus_;
  const bool spin_;
  pthread_t pinned_caller_{};
  bool caller_pinned_ = false;
  int64_t waited_ns_ = 0;

  // Run number `started_` is under way; `working_` workers have not finished it. Set `work_` and `stop_`, then
  // `working_`, then `started_`, which publishes them.
  const absl::FunctionRef<void(int)>* work_ = nullptr;
  bool stop_ = false;
  std::atomic<int> working_ = 0;
  std::atomic<uint64_t> started_ = 0;
  // For those who gave up spinning. The atomics change under the mutex whenever somebody may be asleep over them.
  Mutex mutex_;
  CondVar start_;
  CondVar done_;

  std::vector<std::thread> workers_;
};

}  // namespace baton::cpu
