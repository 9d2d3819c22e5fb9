// SPDX-License-Identifier: Apache-2.0
// Divides chunks of work among compute threads. Each thread begins with an equal share of consecutive chunks, then
// takes chunks that other threads have not begun. A chunk's result must not depend on the thread.
//
// Call Reset before the threads start, then ForEach from each thread at once.
#pragma once

#include <atomic>
#include <vector>

#include "engine/kernels/cpu/thread_pool.h"

namespace baton::cpu {

class WorkShares {
 public:
  explicit WorkShares(int threads) : shares_(threads) {}

  void Reset(int chunks) {
    const int threads = static_cast<int>(shares_.size());
    for (int thread = 0; thread < threads; ++thread) {
      const Share share = ShareOf(chunks, thread, threads);
      shares_[thread].next.store(share.begin, std::memory_order_relaxed);
      shares_[thread].end = share.end;
    }
  }

  // Calls f(chunk) until no chunk is left.
  template <typename F>
  void ForEach(int thread, F f) {
    const int threads = static_cast<int>(shares_.size());
    for (int i = 0; i < threads; ++i) {
      Remaining& share = shares_[(thread + i) % threads];
      for (int chunk = share.Take(); chunk < share.end; chunk = share.Take()) f(chunk);
    }
  }

 private:
  struct alignas(64) Remaining {
    int Take() { return next.fetch_add(1, std::memory_order_relaxed); }
    std::atomic<int> next = 0;
    int end = 0;
  };
  std::vector<Remaining> shares_;  // by thread
};

}  // namespace baton::cpu
