// SPDX-License-Identifier: Apache-2.0
#include "cli/tools/measure_perplexity.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/formats/model_folder.h"
#include "engine/kv/page_pool.h"
#include "text/assets/asset_files.h"
#include "text/tokenizer/tokenizer.h"

namespace baton {
namespace {

constexpr int kScoredAtOnce = 32;  // rows of logits

double NegativeLogLikelihood(std::span<const float> logits, TokenId token) {
  double largest = logits[0];
  for (const float logit : logits) largest = std::max<double>(largest, logit);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum) - logits[token];
}

// Tokenizes `text`. Sets `bos` if the tokenizer puts BOS before texts.
absl::StatusOr<std::vector<TokenId>> Tokens(const std::filesystem::path& model, const std::string& text,
                                            std::optional<TokenId>& bos) {
  BATON_ASSIGN_OR_RETURN(const auto assets, LoadTextAssets(model));
  BATON_ASSIGN_OR_RETURN(
      const std::unique_ptr<Tokenizer> tokenizer,
      Tokenizer::Create(FileOrEmpty(assets, "tokenizer.json"), FileOrEmpty(assets, "tokenizer_config.json")));
  const std::optional<TokenId> own = tokenizer->bos();
  BATON_ASSIGN_OR_RETURN(std::vector<TokenId> tokens, tokenizer->Encode(text, /*add_special_tokens=*/true));
  if (own.has_value() && !tokens.empty() && tokens[0] == *own) bos = own;
  return tokens;
}

class ChunkScorer {
 public:
  ChunkScorer(Model& model, PagePool& pool, std::vector<PageId> pages)
      : model_(model), pool_(pool), pages_(std::move(pages)) {}

  // Adds the negative log likelihoods of the predictions at positions [begin, tokens.size() - 1) to `sum`.
  absl::Status Score(std::span<const TokenId> tokens, int begin, double& sum) {
    BATON_RETURN_IF_ERROR(Run(tokens.first(begin), 0, Want::kNothing));
    const int end = static_cast<int>(tokens.size()) - 1;
    for (int at = begin; at < end; at += kScoredAtOnce) {
      const int count = std::min(kScoredAtOnce, end - at);
      BATON_RETURN_IF_ERROR(Run(tokens.subspan(at, count), at, Want::kAllLogits));
      for (int i = 0; i < count; ++i) {
        sum += NegativeLogLikelihood(output_.row(i).first(model_.config().vocab_size), tokens[at + i + 1]);
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Run(std::span<const TokenId> tokens, int position, Want want) {
    const SequenceInput input = {.tokens = tokens, .start_position = position, .pages = pages_, .want = want};
    return model_.Forward({&input, 1}, pool_, nullptr, output_);
  }

  Model& model_;
  PagePool& pool_;
  const std::vector<PageId> pages_;
  ForwardOutput output_;
};

}  // namespace

absl::StatusOr<Perplexity> MeasurePerplexity(const PerplexityOptions& options, const std::string& text,
                                             const std::function<bool()>& interrupted) {
  std::optional<TokenId> bos;
  BATON_ASSIGN_OR_RETURN(std::vector<TokenId> tokens, Tokens(options.model, text, bos));
  const int chunk = options.chunk_tokens;
  if (tokens.size() < static_cast<size_t>(chunk)) {
    return absl::InvalidArgumentError(
        Concat("the text has ", tokens.size(), " tokens, expected at least a chunk of ", chunk));
  }
  BATON_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, Model::Load(options.model, options.engine));
  const TokenId largest = *std::max_element(tokens.begin(), tokens.end());
  if (largest >= model->config().vocab_size) {
    return absl::InvalidArgumentError(
        Concat("the tokenizer gives token ", largest, ", the model has ", model->config().vocab_size, " tokens"));
  }
  const KvLayout& layout = model->kv_layout();
  BATON_ASSIGN_OR_RETURN(const std::unique_ptr<PagePool> pool,
                         PagePool::Create(layout, static_cast<uint32_t>(layout.pages_for(chunk))));
  BATON_ASSIGN_OR_RETURN(const std::vector<PageRef> pages, pool->Allocate(layout.pages_for(chunk)));
  std::vector<PageId> page_ids;
  page_ids.reserve(pages.size());
  for (const PageRef& page : pages) page_ids.push_back(page.id());

  ChunkScorer scorer(*model, *pool, std::move(page_ids));
  Perplexity result;
  double sum = 0;
  for (size_t first = 0; first + chunk <= tokens.size(); first += chunk) {
    if (interrupted()) return absl::CancelledError("interrupted");
    const std::span<TokenId> part = std::span(tokens).subspan(first, chunk);
    if (bos.has_value()) part[0] = *bos;
    BATON_RETURN_IF_ERROR(scorer.Score(part, chunk / 2, sum));
    ++result.chunks;
    result.scored_tokens += chunk - 1 - chunk / 2;
  }
  result.perplexity = std::exp(sum / result.scored_tokens);
  result.weight_bytes = model->weight_bytes();
  result.kv_bytes_per_token = layout.row_bytes() / layout.page_tokens();
  result.numerics_id = model->numerics_id();
  return result;
}

}  // namespace baton
