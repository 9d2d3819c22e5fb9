// CpuBackend::MeasureLimits.

#include <algorithm>
#include <vector>

#include "common/clock.h"
#include "common/status_macros.h"
#include "engine/kernels/cpu/cpu_backend.h"
#include "engine/kv/host_memory.h"

namespace baton::cpu {
namespace {

constexpr double kSeconds = 0.1;          // of each measurement
constexpr int kRounds = 3;                // the best counts
constexpr int kCallsAtOnce = 200;         // between looks at the clock
constexpr size_t kReadBytes = 256 << 20;  // more than caches hold

double BestRate(ThreadPool& threads, int sink_floats, double (*peak)(int calls, float* sink)) {
  if (peak == nullptr) return 0;
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> rates(threads.threads());
    threads.Run([&](int thread) {
      std::vector<float> sink(sink_floats);
      const Stopwatch watch;
      double done = 0;
      while (watch.seconds() < kSeconds) {
        done += peak(kCallsAtOnce, sink.data());
        std::fill(sink.begin(), sink.end(), 0.0f);
      }
      rates[thread] = done / watch.seconds();
    });
    double sum = 0;
    for (const double rate : rates) sum += rate;
    best = std::max(best, sum);
  }
  return best;
}

}  // namespace

absl::StatusOr<MachineLimits> CpuBackend::MeasureLimits() {
  MachineLimits limits;
  limits.f32_per_second = BestRate(*threads_, kernels_.limit_floats, kernels_.peak_floats);
  limits.bf16_per_second = BestRate(*threads_, kernels_.limit_floats, kernels_.peak_pairs);
  limits.int8_per_second = BestRate(*threads_, kernels_.limit_floats, kernels_.peak_ints);

  BATON_ASSIGN_OR_RETURN(const HostMemory memory, HostMemory::Allocate(kReadBytes, /*huge_pages=*/true));
  std::fill_n(static_cast<char*>(memory.data()), kReadBytes, 1);
  for (int round = 0; round < kRounds; ++round) {
    const Stopwatch watch;
    const int threads = threads_->threads();
    const size_t share = kReadBytes / threads / 4096 * 4096;
    threads_->Run([&](int thread) {
      std::vector<float> sink(kernels_.limit_floats);
      kernels_.read_through(static_cast<const std::byte*>(memory.data()) + thread * share, share, sink.data());
    });
    limits.read_bytes_per_second =
        std::max(limits.read_bytes_per_second, static_cast<double>(share) * threads / watch.seconds());
  }
  return limits;
}

}  // namespace baton::cpu
