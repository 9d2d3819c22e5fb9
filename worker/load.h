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

// Tokens per second of recent steps together, so that a step of few tokens, which takes no less time, counts for
// little.
class MeanSpeed {
 public:
  void Add(double tokens, double seconds) {
    measured_ += tokens;
    tokens_ += kWeight * (tokens - tokens_);
    seconds_ += kWeight * (seconds - seconds_);
  }
  // 0 before enough tokens to tell.
  double tokens_per_second() const { return measured_ >= kEnough && seconds_ > 0 ? tokens_ / seconds_ : 0; }

 private:
  static constexpr double kWeight = 0.1;
  static constexpr double kEnough = 64;
  double measured_ = 0;
  double tokens_ = 0;
  double seconds_ = 0;
};

}  // namespace baton
