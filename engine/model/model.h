// SPDX-License-Identifier: Apache-2.0
// A loaded set of weights with one forward pass over a ragged batch, for prefill and decode alike.
//
// The bits computed for a sequence depend only on its tokens and positions. Other sequences of the batch, chunks and
// the number of threads do not change them (docs/architecture.md, "Numerics").
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/kernels/timed_backend.h"
#include "engine/kv/layout.h"
#include "engine/kv/page_pool.h"
#include "engine/model/config.h"
#include "engine/sampling/sampler.h"
#include "engine/types.h"

namespace baton {

// Called on the loading thread after each matrix, with the bytes of the files' weights packed so far.
using LoadProgress = std::function<void(uint64_t loaded_bytes, uint64_t total_bytes)>;

struct ModelOptions {
  std::string device = "cpu";               // see CreateBackend
  int threads = 1;                          // compute threads, including the calling thread
  std::vector<int> cpus = {};               // one CPU per compute thread to pin it to; empty: unpinned
  std::string kernels = "auto";             // auto | scalar | avx2 | avx512 | avx512-vnni | avx512-bf16
  std::optional<TensorType> quantize = {};  // kQ8_0 or kQ4_0: rounds float matrices at load time
  std::optional<KvType> kv_dtype = {};      // default: f32 for F32 weights, else bf16
  int page_tokens = 16;
  WorkTimes* times = nullptr;  // Forward adds its times here; must outlive the model
  LoadProgress progress = nullptr;
};

enum class Want : uint8_t {
  kNothing,     // KV only, for a chunk before the last
  kToken,       // a token sampled after the last new token; its logits stay in the backend
  kLastLogits,  // logits of the last new token
  kAllLogits,   // logits of every new token
  kLastHidden,  // hidden state of the last new token, after the final norm
};

// A sequence's entry of the ragged batch. Spans must outlive the call.
struct SequenceInput {
  std::span<const TokenId> tokens;  // the new tokens, at least one
  int start_position = 0;           // position of tokens[0]; the pages hold all tokens before
  std::span<const PageId> pages;    // by position; at least start_position + tokens.size() tokens
  Want want = Want::kLastLogits;
  // For Want::kToken; unchanged during the call.
  const SamplingParams* sampling = nullptr;
  const TokenHistory* history = nullptr;
};

// A sequence's rows in ForwardOutput::values.
struct OutputRows {
  int first = 0;
  int count = 0;
};

// Reuse one object for many calls, to keep its memory.
struct ForwardOutput {
  // vocab_size, or max(vocab_size, hidden_size) if the batch wants hidden states. A row of logits or of hidden states
  // uses the first values.
  int width = 0;
  std::vector<float> values;          // [rows, width]
  std::vector<OutputRows> rows;       // one per sequence of the batch
  std::vector<SampledToken> sampled;  // one per sequence of the batch; set for Want::kToken
  std::span<const float> row(int r) const { return {values.data() + size_t(r) * width, size_t(width)}; }
};

// Called on Forward's thread when the pages hold K and V of `layer` for all sequences, before later layers run. KV
// streaming starts here, so it must return quickly. Returning false ends the pass early.
using LayerDone = std::function<bool(int layer)>;

class Model {
 public:
  // Loads a Hugging Face folder or a GGUF file (of a split file the first part). NOT_FOUND, INVALID_ARGUMENT or
  // UNIMPLEMENTED name the file, the field or tensor, and what was expected.
  static absl::StatusOr<std::unique_ptr<Model>> Load(const std::filesystem::path& path, const ModelOptions& options);
  virtual ~Model() = default;

  virtual const ModelConfig& config() const = 0;
  virtual const KvLayout& kv_layout() const = 0;
  virtual MemoryKind kv_memory() const { return MemoryKind::kHost; }  // where Forward needs the pool
  // Identifies weights, dtypes, page size, kernel family and revision. Workers with equal ids compute the same bits.
  virtual const std::string& numerics_id() const = 0;
  virtual std::string_view kernel_family() const = 0;
  virtual size_t weight_bytes() const = 0;
  // Type of the first layer's weights as loaded: the type of most products.
  virtual TensorType weight_type() const = 0;
  // Bytes of weights that a step reads. Excludes an embedding that does not serve as head: a step reads only some of
  // its rows.
  virtual size_t step_bytes() const = 0;
  // Measures the machine's peak rates with these weights. Takes about a second. Do not call during Forward.
  virtual MachineLimits MeasureLimits() = 0;

  // Runs `batch` against `pool`, which must have this model's kv_layout() and kv_memory(). Not thread-safe: one call at
  // a time.
  //   INVALID_ARGUMENT  a token, position or page is out of range; nothing was computed
  //   CANCELLED         `layer_done` returned false
  virtual absl::Status Forward(std::span<const SequenceInput> batch, PagePool& pool, const LayerDone& layer_done,
                               ForwardOutput& output) = 0;
};

}  // namespace baton
