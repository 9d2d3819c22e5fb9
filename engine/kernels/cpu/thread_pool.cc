// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/cpu/thread_pool.h"

#include <sched.h>

#include <cstdio>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/steady_time.h"

namespace baton::cpu {
namespace {

constexpr int kMaxThreads = 1024;
constexpr absl::Duration kSpin = absl::Microseconds(20);

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Spins until done() or for kSpin; returns done().
template <typename Predicate>
bool SpinUntil(Predicate done) {
  const SteadyTime deadline = SteadyTime::Now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      Pause();
    }
  } while (SteadyTime::Now() < deadline);
  return done();
}

cpu_set_t OneCpu(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return set;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ThreadPool>> ThreadPool::Create(int threads, std::vector<int> cpus) {
  if (threads < 1 || threads > kMaxThreads) {
    return absl::InvalidArgumentError(absl::StrCat(threads, " compute threads: expected 1 to ", kMaxThreads));
  }
  if (!cpus.empty() && cpus.size() != static_cast<size_t>(threads)) {
    return absl::InvalidArgumentError(
        absl::StrCat(cpus.size(), " CPUs for ", threads, " compute threads: expected one each or none"));
  }
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) CPU_ZERO(&allowed);
  for (const int cpu : cpus) {
    if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &allowed)) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot pin a compute thread to CPU ", cpu, ": expected a CPU of this process's affinity mask"));
    }
  }
  const bool spin = threads <= CPU_COUNT(&allowed);
  std::unique_ptr<ThreadPool> pool(new ThreadPool(threads, std::move(cpus), spin));
  try {
    for (int i = 1; i < threads; ++i) {
      pool->workers_.emplace_back([pool = pool.get(), i] { pool->RunWorker(i); });
    }
  } catch (const std::system_error& error) {
    const size_t started = pool->workers_.size();
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start compute thread ", started + 1, " of ", threads, ": ", error.what()));
  }
  return pool;
}

ThreadPool::ThreadPool(int threads, std::vector<int> cpus, bool spin)
    : threads_(threads), cpus_(std::move(cpus)), spin_(spin) {
  workers_.reserve(threads - 1);
}

ThreadPool::~ThreadPool() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    started_.fetch_add(1, std::memory_order_release);
  }
  start_.NotifyAll();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Run(absl::FunctionRef<void(int)> work) {
  PinCaller();
  if (threads_ == 1) {
    work(0);
    return;
  }
  {
    const MutexLock lock(mutex_);
    work_ = &work;
    working_.store(threads_ - 1, std::memory_order_relaxed);
    started_.fetch_add(1, std::memory_order_release);
  }
  start_.NotifyAll();  // no system call if all workers spin
  work(0);
  const Stopwatch watch;
  AwaitDone();
  waited_ += watch.elapsed();
}

void ThreadPool::RunWorker(int thread) {
  char name[16];
  std::snprintf(name, sizeof(name), "compute-%d", thread);
  pthread_setname_np(pthread_self(), name);
  if (!cpus_.empty()) {
    const cpu_set_t cpu = OneCpu(cpus_[thread]);
    pthread_setaffinity_np(pthread_self(), sizeof(cpu), &cpu);  // Create checked the CPU
  }
  for (uint64_t seen = 0;; ++seen) {
    AwaitStart(seen);
    if (stop_) return;
    (*work_)(thread);
    if (working_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      {
        const MutexLock lock(mutex_);
      }  // the caller now either waits for done_ or will see working_ == 0
      done_.NotifyOne();
    }
  }
}

void ThreadPool::AwaitStart(uint64_t seen) {
  const auto started = [&] { return started_.load(std::memory_order_acquire) != seen; };
  if (spin_ && SpinUntil(started)) return;
  const MutexLock lock(mutex_);
  while (!started()) start_.Wait(mutex_);
}

void ThreadPool::AwaitDone() {
  const auto done = [&] { return working_.load(std::memory_order_acquire) == 0; };
  if (spin_ && SpinUntil(done)) return;
  const MutexLock lock(mutex_);
  while (!done()) done_.Wait(mutex_);
}

void ThreadPool::PinCaller() {
  if (cpus_.empty()) return;
  if (caller_pinned_ && pthread_equal(pinned_caller_, pthread_self()) != 0) return;
  const cpu_set_t cpu = OneCpu(cpus_[0]);
  pthread_setaffinity_np(pthread_self(), sizeof(cpu), &cpu);  // Create checked the CPU
  pinned_caller_ = pthread_self();
  caller_pinned_ = true;
}

}  // namespace baton::cpu
