// SPDX-License-Identifier: Apache-2.0
#include "reference_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "engine/sampling/philox.h"

namespace baton {
namespace {

double Finite(float logit) {
  return std::isfinite(logit) ? logit : static_cast<double>(std::numeric_limits<float>::lowest());
}

std::vector<double> Adjusted(std::span<const float> logits, const SamplingParams& params,
                             const ReferenceHistory& history) {
  std::vector<double> adjusted;
  for (const float logit : logits) adjusted.push_back(Finite(logit));
  std::set<TokenId> seen(history.prompt.begin(), history.prompt.end());
  seen.insert(history.output.begin(), history.output.end());
  for (const TokenId token : seen) {
    double& logit = adjusted.at(static_cast<size_t>(token));
    logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
  }
  for (const TokenId token : history.output) adjusted.at(static_cast<size_t>(token)) -= params.frequency_penalty;
  for (const TokenId token : std::set<TokenId>(history.output.begin(), history.output.end())) {
    adjusted.at(static_cast<size_t>(token)) -= params.presence_penalty;
  }
  for (const auto& [token, bias] : params.logit_bias) adjusted.at(static_cast<size_t>(token)) += bias;
  if (history.output.size() < params.min_tokens) {
    for (const TokenId token : params.stop_token_ids) {
      adjusted.at(static_cast<size_t>(token)) = -std::numeric_limits<double>::infinity();
    }
  }
  return adjusted;
}

double Total(const std::vector<ReferenceToken>& tokens) {
  double total = 0;
  for (const ReferenceToken& token : tokens) total += token.probability;
  return total;
}

void Normalize(std::vector<ReferenceToken>& tokens) {
  const double total = Total(tokens);
  for (ReferenceToken& token : tokens) token.probability /= total;
}

}  // namespace

TokenHistory ReferenceHistory::ToHistory() const {
  TokenHistory history;
  history.AddPrompt(prompt);
  for (const TokenId token : output) history.AddOutput(token);
  return history;
}

std::vector<ReferenceToken> ReferenceDistribution(std::span<const float> logits, const SamplingParams& params,
                                                  const ReferenceHistory& history) {
  const std::vector<double> adjusted = Adjusted(logits, params, history);
  const double max = *std::max_element(adjusted.begin(), adjusted.end());
  std::vector<ReferenceToken> tokens;
  for (size_t i = 0; i < adjusted.size(); ++i) {
    const double temperature = params.temperature > 0 ? params.temperature : 1e-9;
    tokens.push_back({static_cast<TokenId>(i), std::exp((adjusted[i] - max) / temperature)});
  }
  std::stable_sort(tokens.begin(), tokens.end(), [&](const ReferenceToken& a, const ReferenceToken& b) {
    return adjusted[static_cast<size_t>(a.id)] > adjusted[static_cast<size_t>(b.id)];
  });
  if (params.temperature == 0) tokens.resize(1);
  if (params.top_k > 0) tokens.resize(std::min(tokens.size(), static_cast<size_t>(params.top_k)));
  Normalize(tokens);
  if (params.top_p < 1) {
    double sum = 0;
    size_t kept = 0;
    while (kept < tokens.size() && (kept == 0 || sum < params.top_p)) sum += tokens[kept++].probability;
    tokens.resize(kept);
  }
  const double threshold = params.min_p * tokens.front().probability;
  std::erase_if(tokens, [&](const ReferenceToken& token) { return token.probability < threshold; });
  Normalize(tokens);
  return tokens;
}

SampledToken ReferenceSample(std::span<const float> logits, const SamplingParams& params,
                             const ReferenceHistory& history) {
  std::vector<ReferenceToken> tokens = ReferenceDistribution(logits, params, history);
  std::sort(tokens.begin(), tokens.end(), [](const ReferenceToken& a, const ReferenceToken& b) { return a.id < b.id; });
  const double draw = UniformDraw(params.seed, 0, static_cast<uint32_t>(history.output.size()));
  SampledToken sampled;
  sampled.token = tokens.back().id;
  double sum = 0;
  for (const ReferenceToken& token : tokens) {
    sum += token.probability;
    if (sum > draw) {
      sampled.token = token.id;
      break;
    }
  }
  if (!params.logprobs.has_value()) return sampled;

  const SamplingParams plain;
  for (const ReferenceToken& token : ReferenceDistribution(logits, plain, {})) {
    const auto logprob = static_cast<float>(std::log(token.probability));
    if (token.id == sampled.token) sampled.logprob = logprob;
    if (static_cast<int>(sampled.top.size()) < *params.logprobs) sampled.top.emplace_back(token.id, logprob);
  }
  return sampled;
}

}  // namespace baton
