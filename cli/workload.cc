#include "cli/workload.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace baton {
namespace {

// Uniform in [0, 1), from the upper 53 bits.
double Uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

}  // namespace

std::vector<absl::Duration> PoissonArrivals(const Workload& workload) {
  std::mt19937_64 random(workload.seed);
  std::vector<absl::Duration> arrivals;
  arrivals.reserve(workload.requests);
  double seconds = 0;
  for (int i = 0; i < workload.requests; ++i) {
    // Gaps of a Poisson process are exponential.
    seconds += -std::log1p(-Uniform(random)) / workload.rate;
    arrivals.push_back(absl::Seconds(seconds));
  }
  return arrivals;
}

v1::GenerateRequest MakeRequest(const Workload& workload, int index) {
  std::seed_seq seed = {static_cast<uint32_t>(workload.seed), static_cast<uint32_t>(workload.seed >> 32),
                        static_cast<uint32_t>(index)};
  std::mt19937_64 random(seed);
  // Special tokens live at the ends of a vocabulary: keep away from both.
  const uint64_t low = std::min<uint64_t>(256, workload.vocab_size / 10);
  const uint64_t high = std::max<uint64_t>(workload.vocab_size * uint64_t{9} / 10, low + 1);

  v1::GenerateRequest request;
  request.set_model(workload.model);
  auto& ids = *request.mutable_token_ids()->mutable_ids();
  ids.Reserve(workload.prompt_tokens);
  for (int i = 0; i < workload.prompt_tokens; ++i) {
    ids.Add(static_cast<int32_t>(low + static_cast<uint64_t>(Uniform(random) * static_cast<double>(high - low))));
  }
  v1::SamplingParams& sampling = *request.mutable_sampling();
  sampling.set_temperature(0);
  sampling.set_max_tokens(static_cast<uint32_t>(workload.output_tokens));
  sampling.set_ignore_eos(true);
  return request;
}

}  // namespace baton
