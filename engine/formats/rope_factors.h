// How GGUF files of Llama 3.1 and later state their rotary scaling: a factor by which each pair's frequency is divided.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace baton {

// The parameters of the scaling that Hugging Face calls "llama3".
struct Llama3Scaling {
  double factor = 8.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  double original_max_position = 8192;
};

// [head_dim / 2], the fastest pair first.
std::vector<float> Llama3RopeFactors(const Llama3Scaling& scaling, double theta, int head_dim);

// The scaling whose factors these are, up to the rounding of whoever computed them: of all published models only
// `factor` and perhaps the original length differ. Nothing when they are no such factors.
std::optional<Llama3Scaling> MatchLlama3RopeFactors(std::span<const float> factors, double theta,
                                                    double original_max_position);

}  // namespace baton
