#include "engine/model/replay_model.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/formats/model_folder.h"
#include "engine/model/config.h"
#include "engine/model/ragged_batch.h"

namespace baton {
namespace {

using State = uint64_t;  // of a sequence, after a token
constexpr State kStart = 0x62a70ull;

// SplitMix64's finalizer (Vigna, 2015).
State After(State before, TokenId token) {
  State x = before + 0x9e3779b97f4a7c15ull * (static_cast<State>(token) + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// From the middle of the vocabulary: special tokens are at its ends.
TokenId Says(State state, int vocab_size) {
  const State span = std::max(vocab_size / 2, 1);
  return static_cast<TokenId>(state % span) + vocab_size / 4;
}

// So likely that no temperature picks another one.
constexpr float kLogit = 1e4;

class ReplayModel final : public Model {
 public:
  ReplayModel(ModelConfig config, const KvLayout& layout, const ReplayOptions& options)
      : config_(std::move(config)),
        layout_(layout),
        options_(options),
        numerics_id_(Concat("replay-1-", config_.architecture_name, "-", config_.vocab_size, "/kv-", Name(layout.dtype),
                            "x", layout.page_tokens, "x", layout.page_bytes())) {}

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
    if (pool.layout() != layout_) return absl::InvalidArgumentError("the pool is of another KV layout");
    BATON_ASSIGN_OR_RETURN(const RaggedBatch rows, LayOutRows(batch, config_, layout_, pool.pages_total()));
    if (!rows.hidden_rows.empty()) return absl::UnimplementedError("a replayed model has no hidden states");
    BATON_ASSIGN_OR_RETURN(const std::vector<State> states, Compute(rows, pool));
    const absl::Duration layer_time = StepTime(rows) / config_.layers;
    const absl::Time start = absl::Now();
    for (int layer = 0; layer < config_.layers; ++layer) {
      absl::SleepFor(start + (layer + 1) * layer_time - absl::Now());
      for (const SequenceRows& sequence : rows.sequences) {
        for (int i = 0; i < sequence.rows; ++i) {
          std::memcpy(Place(pool, layer, sequence, i), &states[sequence.first_row + i], sizeof(State));
        }
      }
      if (layer_done && !layer_done(layer)) return absl::CancelledError("the step was called off");
    }
    output.width = config_.vocab_size;
    output.rows = rows.outputs;
    output.values.assign(size_t(rows.wanted()) * config_.vocab_size, 0);
    for (int i = 0; i < rows.wanted(); ++i) {
      const TokenId said = Says(states[rows.wanted_rows[i]], config_.vocab_size);
      output.values[size_t(i) * config_.vocab_size + said] = kLogit;
    }
    return absl::OkStatus();
  }

 private:
  // Of the sequence's row `i`; -1 is the token before the first.
  std::byte* Place(PagePool& pool, int layer, const SequenceRows& sequence, int i) const {
    const int position = sequence.start_position + i;
    const size_t slot_bytes = layout_.block_bytes() / layout_.page_tokens;
    return pool.block(layer, sequence.pages[position / layout_.page_tokens]) +
           position % layout_.page_tokens * slot_bytes;
  }

  absl::StatusOr<State> StateBefore(const SequenceRows& sequence, PagePool& pool) const {
    if (sequence.start_position == 0) return kStart;
    State state = 0;
    for (int layer = 0; layer < config_.layers; ++layer) {
      State read = 0;
      std::memcpy(&read, Place(pool, layer, sequence, -1), sizeof(read));
      if (layer > 0 && read != state) {
        return absl::InternalError(Concat("KV of position ", sequence.start_position - 1, " in layer ", layer,
                                          " is not of the sequence that layer 0 has there"));
      }
      state = read;
    }
    return state;
  }

  // After each row.
  absl::StatusOr<std::vector<State>> Compute(const RaggedBatch& rows, PagePool& pool) const {
    std::vector<State> states(rows.rows());
    for (const SequenceRows& sequence : rows.sequences) {
      BATON_ASSIGN_OR_RETURN(State state, StateBefore(sequence, pool));
      for (int row = sequence.first_row; row < sequence.first_row + sequence.rows; ++row) {
        states[row] = state = After(state, rows.tokens[row]);
      }
    }
    return states;
  }

  absl::Duration StepTime(const RaggedBatch& rows) const {
    const auto more = static_cast<double>(rows.rows() - static_cast<int>(rows.sequences.size()));
    return options_.step + absl::Seconds(more / options_.prefill_tokens_per_second);
  }

  const ModelConfig config_;
  const KvLayout layout_;
  const ReplayOptions options_;
  const std::string numerics_id_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> LoadReplayModel(const std::filesystem::path& path,
                                                       const ReplayOptions& options) {
  BATON_ASSIGN_OR_RETURN(const ModelText config_json, LoadConfigJson(path));
  BATON_ASSIGN_OR_RETURN(ModelConfig config, ParseModelConfig(config_json.text, config_json.origin));
  const KvLayout layout = {config.layers, config.kv_heads, config.head_dim, options.page_tokens,
                           options.kv_dtype.value_or(KvType::kBF16)};
  if (layout.block_bytes() / layout.page_tokens < sizeof(State)) {
    return absl::InvalidArgumentError(Concat(config_json.origin, ": a token's KV has ",
                                             layout.block_bytes() / layout.page_tokens, " bytes per layer, expected ",
                                             sizeof(State), " at least"));
  }
  return std::make_unique<ReplayModel>(std::move(config), layout, options);
}

}  // namespace baton
