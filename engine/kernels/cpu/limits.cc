// SPDX-License-Identifier: Apache-2.0
// CpuBackend::MeasureLimits.

#include <algorithm>
#include <vector>

#include "common/steady_time.h"
#include "engine/kernels/cpu/cpu_backend.h"

namespace baton::cpu {
namespace {

constexpr double kSeconds = 0.1;   // per measurement
constexpr int kRounds = 3;         // the best round is reported
constexpr int kCallsAtOnce = 200;  // between two readings of the clock
constexpr size_t kWholeReadBytes = 4096;

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

double BestReadRate(ThreadPool& threads, const KernelTable& kernels, std::span<const Matrix* const> weights) {
  const auto share_of = [&](const Matrix& matrix) {
    return matrix.bytes() / threads.threads() / kWholeReadBytes * kWholeReadBytes;
  };
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Stopwatch watch;
    double bytes = 0;
    do {
      threads.Run([&](int thread) {
        std::vector<float> sink(kernels.limit_floats);
        for (const Matrix* const matrix : weights) {
          const size_t share = share_of(*matrix);
          const std::span<const std::byte> data = static_cast<const PackedMatrix*>(matrix)->data();
          kernels.read_through(data.data() + thread * share, share, sink.data());
        }
      });
      for (const Matrix* const matrix : weights) bytes += static_cast<double>(share_of(*matrix)) * threads.threads();
    } while (watch.seconds() < kSeconds);
    best = std::max(best, bytes / watch.seconds());
  }
  return best;
}

}  // namespace

MachineLimits CpuBackend::MeasureLimits(std::span<const Matrix* const> weights) {
  MachineLimits limits;
  limits.f32_per_second = BestRate(*threads_, kernels_.limit_floats, kernels_.peak_floats);
  limits.bf16_per_second = BestRate(*threads_, kernels_.limit_floats, kernels_.peak_pairs);
  limits.int8_per_second = BestRate(*threads_, kernels_.limit_floats, kernels_.peak_ints);
  limits.read_bytes_per_second = BestReadRate(*threads_, kernels_, weights);
  return limits;
}

}  // namespace baton::cpu
