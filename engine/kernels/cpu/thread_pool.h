// SPDX-License-Identifier: Apache-2.0
// The compute threads of one backend: the caller and threads() - 1 workers, which all run the same function at the same
// time. The function divides the work.
//
// Idle threads spin briefly, because the next Run usually follows at once, and then block, so that processes can share
// CPUs. If there are fewer CPUs than threads, idle threads block at once.
//
// One Run at a time; any thread may call it. The destructor joins the workers.
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

// One thread's share of `count` items: [begin, end). Shares are equal and consecutive.
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
  // Thread i, including the caller (thread 0), is pinned to cpus[i] unless `cpus` is empty. INVALID_ARGUMENT for a bad
  // count or a CPU that this process may not use; RESOURCE_EXHAUSTED if a thread cannot be started.
  static absl::StatusOr<std::unique_ptr<ThreadPool>> Create(int threads, std::vector<int> cpus);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }
  // Calls work(thread) on every thread in [0, threads()) at once. Returns when all calls have returned.
  void Run(absl::FunctionRef<void(int thread)> work);
  // Total time that Run waited for the workers after the caller's own share. Do not call during Run.
  absl::Duration waited() const { return waited_; }

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
  absl::Duration waited_;

  // `started_` counts runs; `working_` counts workers that have not finished the current run. Run sets work_ and stop_,
  // then working_, then started_, which publishes all of them.
  const absl::FunctionRef<void(int)>* work_ = nullptr;
  bool stop_ = false;
  std::atomic<int> working_ = 0;
  std::atomic<uint64_t> started_ = 0;
  // Threads that stopped spinning wait here. The atomics change under mutex_ if a thread may be waiting for the change.
  Mutex mutex_;
  CondVar start_;
  CondVar done_;

  std::vector<std::thread> workers_;
};

}  // namespace baton::cpu
