// SPDX-License-Identifier: Apache-2.0
#include "cli/tools/measure_profile.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/memory_headroom.h"
#include "common/status_macros.h"
#include "common/steady_time.h"
#include "engine/kv/page_pool.h"
#include "engine/sampling/sampler.h"

namespace baton {
namespace {

constexpr int kFillTokens = 512;  // of the steps that only fill the context

int Largest(const std::vector<int>& values) { return values.empty() ? 0 : *std::ranges::max_element(values); }

double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

class ProfileBench {
 public:
  ProfileBench(const ProfileOptions& options, Model& model, const std::function<bool()>& interrupted)
      : model_(model),
        interrupted_(interrupted),
        context_(Largest(options.contexts)),
        tokens_(context_ + std::max(Largest(options.chunks), 1)),
        sequences_(Largest(options.sequences) + 1) {
    greedy_.temperature = 0;
  }

  // Gives every sequence pages of its own with the KV of the longest context: steps must read as much memory as steps
  // of different sequences do.
  absl::Status Prepare(int threads) {
    const KvLayout& layout = model_.kv_layout();
    if (tokens_ > model_.config().max_positions) {
      return absl::InvalidArgumentError(absl::StrCat("the model has ", model_.config().max_positions,
                                                     " positions, the largest context and chunk need ", tokens_));
    }
    const int each = layout.pages_for(tokens_);
    const uint64_t pages = uint64_t(each) * sequences_;
    BATON_RETURN_IF_ERROR(ReadMemoryHeadroom().Check(pages * layout.page_bytes()));
    BATON_ASSIGN_OR_RETURN(pool_, PagePool::Create(layout, static_cast<uint32_t>(pages)));
    BATON_RETURN_IF_ERROR(pool_->Prefault(threads));
    for (int s = 0; s < sequences_; ++s) {
      BATON_ASSIGN_OR_RETURN(pages_.emplace_back(), pool_->Allocate(each));
      page_ids_.emplace_back();
      for (const PageRef& page : pages_.back()) page_ids_.back().push_back(page.id());
    }
    ids_.reserve(tokens_);
    for (int i = 0; i < tokens_; ++i) {
      ids_.push_back(static_cast<TokenId>((int64_t{i} * 7919 + 13) % model_.config().vocab_size));
    }
    for (int done = 0; done < context_; done += kFillTokens) {
      BATON_RETURN_IF_ERROR(Run({0, std::min(kFillTokens, context_ - done), done}).status());
    }
    for (int s = 1; s < sequences_; ++s) {
      for (size_t i = 0; i < page_ids_[s].size(); ++i) CopyPage(page_ids_[0][i], page_ids_[s][i], i % layout.groups());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<double> Measure(const StepProfile::Step& step) {
    return Run({step.decode_rows, step.prompt_tokens, step.context_tokens});
  }

 private:
  struct Shape {
    int rows;
    int chunk;
    int position;
  };

  void CopyPage(PageId from, PageId to, size_t group) {
    const KvLayout& layout = model_.kv_layout();
    for (int layer = 0; layer < layout.layers(); ++layer) {
      const auto place = static_cast<size_t>(layout.place(layer).group);
      if (place == group) std::memcpy(pool_->block(layer, to), pool_->block(layer, from), layout.block(place).bytes());
    }
  }

  SequenceInput Input(int sequence, int tokens, int position) const {
    return {.tokens = std::span(ids_).subspan(position, tokens),
            .start_position = position,
            .pages = page_ids_[sequence],
            .want = Want::kToken,
            .sampling = &greedy_,
            .history = &history_};
  }

  // Returns the seconds of the step.
  absl::StatusOr<double> Run(const Shape& shape) {
    if (interrupted_()) return absl::CancelledError("interrupted");
    std::vector<SequenceInput> batch;
    for (int row = 1; row <= shape.rows; ++row) batch.push_back(Input(row, 1, shape.position));
    if (shape.chunk > 0) batch.push_back(Input(0, shape.chunk, shape.position));
    const Stopwatch watch;
    BATON_RETURN_IF_ERROR(model_.Forward(batch, *pool_, nullptr, output_));
    return watch.seconds();
  }

  Model& model_;
  const std::function<bool()>& interrupted_;
  const int context_;
  const int tokens_;     // of a sequence
  const int sequences_;  // the prompt is sequence 0
  std::unique_ptr<PagePool> pool_;
  std::vector<std::vector<PageRef>> pages_;
  std::vector<std::vector<PageId>> page_ids_;
  std::vector<TokenId> ids_;
  ForwardOutput output_;
  SamplingParams greedy_;
  TokenHistory history_;
};

std::vector<StepProfile::Step> AllSteps(const ProfileOptions& options) {
  const auto with_none = [](std::vector<int> values) {
    values.insert(values.begin(), 0);
    return values;
  };
  std::vector<StepProfile::Step> steps;
  for (const int context : options.contexts) {
    for (const int chunk : with_none(options.chunks)) {
      for (const int rows : with_none(options.sequences)) {
        if (chunk + rows > 0) steps.push_back({chunk, rows, context, 0});
      }
    }
  }
  return steps;
}

}  // namespace

absl::StatusOr<StepProfile> MeasureProfile(ProfileOptions options, const std::function<bool()>& interrupted) {
  BATON_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, Model::Load(options.model, options.engine));
  if (options.contexts.empty()) {
    const int most = model->config().max_positions - Largest(options.chunks);
    options.contexts = {64, std::clamp(most, 65, 1024)};
  }
  ProfileBench bench(options, *model, interrupted);
  BATON_RETURN_IF_ERROR(bench.Prepare(options.engine.threads));
  const KvLayout& layout = model->kv_layout();
  StepProfile profile{.model = options.model.filename().empty() ? options.model.parent_path().filename().string()
                                                                : options.model.filename().string(),
                      .numerics_id = model->numerics_id(),
                      .threads = options.engine.threads,
                      .layers = layout.layers(),
                      .page_tokens = layout.page_tokens(),
                      .kv_token_bytes = static_cast<int>(layout.row_bytes() / layout.page_tokens()),
                      .max_context_tokens = model->config().max_positions,
                      .cost = {},
                      .steps = AllSteps(options)};
  // One round after the other: a disturbance then touches a repeat of many steps, not all repeats of one step.
  std::vector<std::vector<double>> seconds(profile.steps.size());
  for (int round = -1; round < options.repeats; ++round) {
    for (size_t i = 0; i < profile.steps.size(); ++i) {
      BATON_ASSIGN_OR_RETURN(const double measured, bench.Measure(profile.steps[i]));
      if (round >= 0) seconds[i].push_back(measured);  // the first round warms up
    }
  }
  std::vector<MeasuredStep> measured;
  for (size_t i = 0; i < profile.steps.size(); ++i) {
    profile.steps[i].seconds = MedianOf(seconds[i]);
    measured.push_back({profile.steps[i].work(), profile.steps[i].seconds});
  }
  profile.cost = FitStepCost(measured);
  return profile;
}

}  // namespace baton
