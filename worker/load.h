// How busy a worker is, written by its engine and read by whoever reports it.
//
// Thread-safe: plain atomics; a reader may see one field newer than another.
#pragma once

#include <atomic>
#include <cstdint>

namespace baton {

struct WorkerLoadBoard {
  std::atomic<uint32_t> waiting_requests{0};
  std::atomic<uint64_t> waiting_tokens{0};
  std::atomic<uint32_t> running_sequences{0};
  std::atomic<double> prefill_tokens_per_second{0};
  std::atomic<double> step_seconds{0};
};

// An exponential mean that follows about the last `1 / weight` samples.
inline void UpdateMean(std::atomic<double>& mean, double sample, double weight = 0.1) {
  const double old = mean.load(std::memory_order_relaxed);
  mean.store(old == 0 ? sample : old + weight * (sample - old), std::memory_order_relaxed);
}

}  // namespace baton
