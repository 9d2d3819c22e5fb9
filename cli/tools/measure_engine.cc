// SPDX-License-Identifier: Apache-2.0
#include "cli/tools/measure_engine.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "common/status_macros.h"
#include "common/steady_time.h"
#include "engine/kv/page_pool.h"
#include "engine/sampling/sampler.h"

namespace baton {
namespace {

constexpr int kChunkTokens = 512;  // of the prompts that only fill the context

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// The multiply-adds of one row with all weights of the layers, and with the head.
struct RowProducts {
  double layers;
  double head;
};
RowProducts CountProducts(const ModelConfig& config) {
  const double hidden = config.hidden_size;
  const double q = double{1} * config.heads * config.head_dim;
  const double kv = double{1} * config.kv_heads * config.head_dim;
  return {config.layers * hidden * (2 * q + 2 * kv + 3.0 * config.ffn_size), hidden * config.vocab_size};
}

class EngineBench {
 public:
  EngineBench(const EngineBenchOptions& options, Model& model, WorkTimes& times,
              const std::function<bool()>& interrupted)
      : options_(options), model_(model), times_(times), interrupted_(interrupted) {
    greedy_.temperature = 0;
  }

  absl::StatusOr<EngineMeasurement> Prefill() {
    const int tokens = options_.prompt_tokens;
    BATON_RETURN_IF_ERROR(MakeSequences(1, tokens));
    EngineMeasurement result;
    result.prefill = true;
    std::vector<double> seconds;
    BATON_RETURN_IF_ERROR(Step(tokens, 0).status());  // allocates once, and warms the caches
    Begin();
    for (int i = 0; i < options_.repeats; ++i) {
      BATON_ASSIGN_OR_RETURN(seconds.emplace_back(), Step(tokens, 0));
    }
    Finish(seconds, tokens, result);
    const RowProducts products = CountProducts(model_.config());
    result.operations_per_second = 2 * (products.layers * tokens + products.head) / result.step_seconds;
    result.read_bytes_per_second = static_cast<double>(model_.step_bytes()) / result.step_seconds;
    return result;
  }

  absl::StatusOr<EngineMeasurement> Decode(int sequences) {
    const int context = options_.context_tokens;
    BATON_RETURN_IF_ERROR(MakeSequences(sequences, context + options_.output_tokens));
    EngineMeasurement result;
    result.sequences = sequences;
    result.context_tokens = context;
    for (int done = 0; done < context; done += kChunkTokens) {
      BATON_RETURN_IF_ERROR(Step(std::min(kChunkTokens, context - done), done).status());
    }
    std::vector<double> rounds;
    Begin();
    for (int i = 0; i < options_.repeats; ++i) {
      double round = 0;
      for (int step = 0; step < options_.output_tokens; ++step) {
        BATON_ASSIGN_OR_RETURN(const double seconds, Step(1, context + step));
        round += seconds / options_.output_tokens;
      }
      rounds.push_back(round);
    }
    Finish(rounds, sequences, result);
    const RowProducts products = CountProducts(model_.config());
    result.operations_per_second = 2 * sequences * (products.layers + products.head) / result.step_seconds;
    const KvLayout& layout = model_.kv_layout();
    const double kv_bytes = static_cast<double>(layout.row_bytes()) / layout.page_tokens() * sequences *
                            (context + options_.output_tokens / 2.0);
    result.read_bytes_per_second = (static_cast<double>(model_.step_bytes()) + kv_bytes) / result.step_seconds;
    return result;
  }

 private:
  absl::Status MakeSequences(int count, int tokens) {
    pages_.clear();
    page_ids_.clear();
    pool_.reset();
    const int each = model_.kv_layout().pages_for(tokens);
    BATON_ASSIGN_OR_RETURN(pool_, PagePool::Create(model_.kv_layout(), static_cast<uint32_t>(each * count)));
    for (int s = 0; s < count; ++s) {
      BATON_ASSIGN_OR_RETURN(pages_.emplace_back(), pool_->Allocate(each));
      page_ids_.emplace_back();
      for (const PageRef& page : pages_.back()) page_ids_.back().push_back(page.id());
    }
    tokens_.clear();
    tokens_.reserve(tokens);
    for (int i = 0; i < tokens; ++i)
      tokens_.push_back(static_cast<TokenId>((int64_t{i} * 7919 + 13) % model_.config().vocab_size));
    return absl::OkStatus();
  }

  // Runs one step: `tokens` tokens of each sequence from `position`, and one sample for each sequence. Returns the
  // step's seconds.
  absl::StatusOr<double> Step(int tokens, int position) {
    if (interrupted_()) return absl::CancelledError("interrupted");
    const Stopwatch watch;
    std::vector<SequenceInput> batch;
    batch.reserve(page_ids_.size());
    for (const std::vector<PageId>& pages : page_ids_) {
      batch.push_back({.tokens = std::span(tokens_).subspan(position, tokens),
                       .start_position = position,
                       .pages = pages,
                       .want = Want::kToken,
                       .sampling = &greedy_,
                       .history = &history_});
    }
    BATON_RETURN_IF_ERROR(model_.Forward(batch, *pool_, nullptr, output_));
    ++steps_;
    return watch.seconds();
  }

  // Starts a measurement: forgets the steps before.
  void Begin() {
    times_ = {};
    steps_ = 0;
  }
  void Finish(const std::vector<double>& seconds, int tokens, EngineMeasurement& result) const {
    result.step_seconds = Median(seconds);
    result.tokens_per_second = tokens / result.step_seconds;
    result.work = {.products = times_.products / steps_,
                   .attention = times_.attention / steps_,
                   .kv = times_.kv / steps_,
                   .element_wise = times_.element_wise / steps_,
                   .sampling = times_.sampling / steps_,
                   .waiting = times_.waiting / steps_};
  }

  const EngineBenchOptions& options_;
  Model& model_;
  WorkTimes& times_;
  const std::function<bool()>& interrupted_;
  std::unique_ptr<PagePool> pool_;
  std::vector<std::vector<PageRef>> pages_;
  std::vector<std::vector<PageId>> page_ids_;
  std::vector<TokenId> tokens_;
  ForwardOutput output_;
  SamplingParams greedy_;
  TokenHistory history_;
  int steps_ = 0;
};

}  // namespace

absl::StatusOr<EngineReport> BenchEngine(const EngineBenchOptions& options, const std::function<bool()>& interrupted) {
  EngineReport report;
  WorkTimes times;
  ModelOptions engine = options.engine;
  engine.times = &times;
  const Stopwatch loading;
  BATON_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, Model::Load(options.model, engine));
  report.load_seconds = loading.seconds();
  report.kernels = std::string(model->kernel_family());
  report.numerics_id = model->numerics_id();
  report.weight_type = model->weight_type();
  report.weight_bytes = model->weight_bytes();
  const int longest = std::max(options.prompt_tokens, options.context_tokens + options.output_tokens);
  if (longest > model->config().max_positions) {
    return absl::InvalidArgumentError(absl::StrCat("the model has ", model->config().max_positions,
                                                   " positions, the measurements would need ", longest));
  }
  report.limits = model->MeasureLimits();
  EngineBench bench(options, *model, times, interrupted);
  BATON_ASSIGN_OR_RETURN(report.measurements.emplace_back(), bench.Prefill());
  for (const int sequences : options.sequences) {
    BATON_ASSIGN_OR_RETURN(report.measurements.emplace_back(), bench.Decode(sequences));
  }
  return report;
}

}  // namespace baton
