// SPDX-License-Identifier: Apache-2.0
#include "engine/model/replay_model.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/split_mix.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/formats/model_folder.h"
#include "engine/model/config.h"
#include "engine/model/ragged_batch.h"

namespace baton {
namespace {

using Mark = uint64_t;  // see replay_model.h
constexpr Mark kStart = 0x62a70ull;

// State of a sequence after a token: the last token's mark and a hash of all marks with their positions.
struct State {
  Mark last = kStart;
  uint64_t hash = 0;

  void AddMark(Mark mark, int position) {
    last = mark;
    hash += SplitMix(mark ^ static_cast<uint64_t>(position));
  }
  void AddToken(TokenId token, int position) {
    AddMark(SplitMix(last + kSplitMixStep * (static_cast<uint64_t>(token) + 1)), position);
  }
  // Returns a token from the middle of the vocabulary, because special tokens are at its ends.
  TokenId Next(int vocab_size) const {
    return static_cast<TokenId>(SplitMix(hash) % static_cast<uint64_t>(std::max(vocab_size / 2, 1))) + vocab_size / 4;
  }
};

// High enough that no temperature picks another token.
constexpr float kLogit = 1e4;

class ReplayModel final : public Model {
 public:
  ReplayModel(ModelConfig config, const KvLayout& layout, const ReplayOptions& options)
      : config_(std::move(config)),
        layout_(layout),
        options_(options),
        numerics_id_(Concat("replay-2-", config_.architecture_name, "-", config_.vocab_size, "/kv-",
                            Name(layout.dtype()), "x", layout.page_tokens(), "x", layout.page_bytes())) {}

  const ModelConfig& config() const override { return config_; }
  const KvLayout& kv_layout() const override { return layout_; }
  const std::string& numerics_id() const override { return numerics_id_; }
  std::string_view kernel_family() const override { return "replay"; }
  size_t weight_bytes() const override { return 0; }
  TensorType weight_type() const override { return TensorType::kF32; }
  size_t step_bytes() const override { return 0; }
  MachineLimits MeasureLimits() override { return {}; }

  absl::Status Forward(std::span<const SequenceInput> batch, PagePool& pool, const LayerDone& layer_done,
                       ForwardOutput& output) override {
    if (pool.layout() != layout_)
      return absl::InvalidArgumentError("the page pool has another KV layout than the model");
    BATON_ASSIGN_OR_RETURN(const RaggedBatch rows, LayOutRows(batch, config_, layout_, pool.pages_total()));
    if (!rows.hidden_rows.empty())
      return absl::UnimplementedError("the replay model has no hidden states, expected a request for logits");
    const SteadyTime start = options_.now();
    BATON_ASSIGN_OR_RETURN(const std::vector<State> states, Compute(rows, pool));
    Sample(batch, rows, states, output);  // before the layers, so that the step's end is the last layer's
    const absl::Duration layer_time = absl::Seconds(options_.cost.Seconds(WorkOf(rows))) / config_.layers;
    for (int layer = 0; layer < config_.layers; ++layer) {
      options_.sleep_until(start + (layer + 1) * layer_time);
      for (const SequenceRows& sequence : rows.groups[layout_.place(layer).group].sequences) {
        for (int i = 0; i < sequence.rows; ++i) {
          std::memcpy(Place(pool, layer, sequence, sequence.start_position + i), &states[sequence.first_row + i].last,
                      sizeof(Mark));
        }
      }
      if (layer_done && !layer_done(layer))
        return absl::CancelledError(Concat("layer_done stopped the step at layer ", layer));
    }
    return absl::OkStatus();
  }

 private:
  std::byte* Place(PagePool& pool, int layer, const SequenceRows& sequence, int position) const {
    const int page_tokens = layout_.page_tokens();
    const size_t slot_bytes = layout_.block(layout_.place(layer).group).bytes() / page_tokens;
    return pool.block(layer, sequence.pages[position / page_tokens]) + position % page_tokens * slot_bytes;
  }
  Mark Read(PagePool& pool, int layer, const RaggedBatch& rows, size_t sequence, int position) const {
    Mark mark = 0;
    const SequenceRows& in_group = rows.groups[layout_.place(layer).group].sequences[sequence];
    std::memcpy(&mark, Place(pool, layer, in_group, position), sizeof(mark));
    return mark;
  }

  // Returns the state before the sequence's first row, read from the pages.
  absl::StatusOr<State> StateBefore(const RaggedBatch& rows, size_t sequence, PagePool& pool) const {
    State state;
    const int end = rows.sequences()[sequence].start_position;
    for (int position = 0; position < end; ++position) {
      state.AddMark(Read(pool, (position + end) % config_.layers, rows, sequence, position), position);
    }
    for (int layer = 0; layer < config_.layers && end > 0; ++layer) {
      if (Read(pool, layer, rows, sequence, end - 1) == state.last) continue;
      return absl::InternalError(
          Concat("KV of position ", end - 1, " in layer ", layer, " belongs to another sequence than in other layers"));
    }
    return state;
  }

  // Returns the state after each row.
  absl::StatusOr<std::vector<State>> Compute(const RaggedBatch& rows, PagePool& pool) const {
    std::vector<State> states(rows.rows());
    for (size_t index = 0; index < rows.sequences().size(); ++index) {
      const SequenceRows& sequence = rows.sequences()[index];
      BATON_ASSIGN_OR_RETURN(State state, StateBefore(rows, index, pool));
      for (int i = 0; i < sequence.rows; ++i) {
        state.AddToken(rows.tokens[sequence.first_row + i], sequence.start_position + i);
        states[sequence.first_row + i] = state;
      }
    }
    return states;
  }

  void Sample(std::span<const SequenceInput> batch, const RaggedBatch& rows, const std::vector<State>& states,
              ForwardOutput& output) {
    output.width = config_.vocab_size;
    output.rows = rows.outputs;
    // The rows to sample from come last, and only they leave the output.
    output.values.assign(size_t(rows.wanted()) * config_.vocab_size, 0);
    for (int i = 0; i < rows.wanted(); ++i) {
      const TokenId next = states[rows.wanted_rows[i]].Next(config_.vocab_size);
      output.values[size_t(i) * config_.vocab_size + next] = kLogit;
    }
    output.sampled.assign(batch.size(), {});
    const int copied = rows.wanted() - rows.sampled();
    for (int i = 0; i < rows.sampled(); ++i) {
      const SequenceInput& sequence = batch[rows.sampled_sequences[i]];
      output.sampled[rows.sampled_sequences[i]] =
          sampler_.Sample(output.row(copied + i), *sequence.sampling, *sequence.history);
    }
    output.values.resize(size_t(copied) * config_.vocab_size);
  }

  static StepWork WorkOf(const RaggedBatch& rows) {
    StepWork work;
    for (const SequenceRows& sequence : rows.sequences()) {
      if (sequence.rows == 1) {
        work.AddDecode(sequence.start_position);
      } else {
        work.AddPrompt(sequence.start_position, sequence.rows);
      }
    }
    return work;
  }

  const ModelConfig config_;
  const KvLayout layout_;
  const ReplayOptions options_;
  const std::string numerics_id_;
  Sampler sampler_;
};

}  // namespace

void SleepUntil(SteadyTime time) {
  constexpr unsigned long kSlackNanos = 1000;  // NOLINT(google-runtime-int): the type of prctl's arguments
  thread_local const bool set = prctl(PR_SET_TIMERSLACK, kSlackNanos, 0, 0, 0) == 0;
  static_cast<void>(set);  // without, sleeps are only less precise
  absl::SleepFor(time - SteadyTime::Now());
}

absl::StatusOr<std::unique_ptr<Model>> LoadReplayModel(const std::filesystem::path& path,
                                                       const ReplayOptions& options) {
  BATON_ASSIGN_OR_RETURN(const ModelText config_json, LoadConfigJson(path));
  BATON_ASSIGN_OR_RETURN(ModelConfig config, ParseModelConfig(config_json.text, config_json.origin));
  const KvBlock block = {config.kv_heads, config.head_dim, options.page_tokens,
                         options.kv_dtype.value_or(KvType::kBF16)};
  if (block.bytes() / block.page_tokens < sizeof(Mark)) {
    return absl::InvalidArgumentError(Concat(config_json.origin, ": a token's KV has ",
                                             block.bytes() / block.page_tokens, " bytes per layer, expected at least ",
                                             sizeof(Mark)));
  }
  const int layers = config.layers;
  return std::make_unique<ReplayModel>(std::move(config), KvLayout(layers, block), options);
}

}  // namespace baton
