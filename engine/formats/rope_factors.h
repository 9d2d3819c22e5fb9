// SPDX-License-Identifier: Apache-2.0
// Converts Llama 3's RoPE scaling between its parameters (Hugging Face) and its factors (GGUF). Factor i divides the
// frequency of rotary pair i. Pure functions.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace baton {

// The parameters of rope_scaling in config.json when rope_type is "llama3".
struct Llama3Scaling {
  double factor = 8.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  double original_max_position = 8192;
};

// Scales the frequency of a rotary pair, by the pair's turns within the original context:
//   fewer than low_freq_factor   the frequency is divided by `factor`
//   more than high_freq_factor   the frequency stays
//   between                      the two are blended linearly
double Llama3Frequency(const Llama3Scaling& scaling, double frequency);

// Returns [head_dim / 2] factors, highest frequency first.
std::vector<float> Llama3RopeFactors(const Llama3Scaling& scaling, double theta, int head_dim);

// Returns the parameters that give `factors` within float rounding; nullopt when no parameters do. Assumes the default
// low_freq_factor and high_freq_factor, which all published models use.
std::optional<Llama3Scaling> MatchLlama3RopeFactors(std::span<const float> factors, double theta,
                                                    double original_max_position);

}  // namespace baton
