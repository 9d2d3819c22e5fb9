// A Model is a loaded set of weights and the one forward pass over a ragged batch that serves prefill and decode alike.
//
// Bit for bit, what it computes for a sequence depends on that sequence's tokens and positions alone: not on the other
// sequences of the batch, on how the prompt was cut into chunks, or on the number of threads (docs/architecture.md,
// "Numerics").
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
#include "engine/types.h"

namespace baton {

// Called on the loading thread after each matrix: so many of the files' bytes of weights are packed.
using LoadProgress = std::function<void(uint64_t loaded_bytes, uint64_t total_bytes)>;

struct ModelOptions {
  int threads = 1;                          // compute threads, the caller's included
  std::vector<int> cpus = {};               // pin them there, one each; empty: unpinned
  std::string kernels = "auto";             // auto | scalar | avx2 | avx512 | avx512-vnni | avx512-bf16
  std::optional<TensorType> quantize = {};  // kQ8_0 or kQ4_0: what becomes of float matrices when they are loaded
  std::optional<KvType> kv_dtype = {};      // default: f32 for F32 weights, else bf16
  int page_tokens = 16;
  WorkTimes* times = nullptr;  // where Forward spends its time is added up here; must outlive the model
  LoadProgress progress = nullptr;
};

enum class Want : uint8_t {
  kNothing,     // KV only: a chunk before the last
  kLastLogits,  // of the last new token
  kAllLogits,   // of every new token
  kLastHidden,  // after the final norm, of the last new token
};

// One entry of the ragged batch. Spans must outlive the call.
struct SequenceInput {
  std::span<const TokenId> tokens;  // the new tokens, at least one
  int start_position = 0;           // of tokens[0]; everything before is in the pages
  std::span<const PageId> pages;    // in position order; cover start_position + tokens.size()
  Want want = Want::kLastLogits;
};

// Where a sequence's rows are in ForwardOutput::values.
struct OutputRows {
  int first = 0;
  int count = 0;
};

// Reused from call to call, to keep its memory.
struct ForwardOutput {
  // vocab_size, or hidden_size if that is more and hidden states were wanted; a row uses the first values of its kind.
  int width = 0;
  std::vector<float> values;     // [rows, width]
  std::vector<OutputRows> rows;  // one per sequence of the batch
  std::span<const float> row(int r) const { return {values.data() + size_t(r) * width, size_t(width)}; }
};

// Called on the thread that called Forward once K and V of `layer` are in the pages for every sequence of the batch,
// while the rest of the pass is still to come. What streams KV out hangs here: it must return quickly. False ends the
// pass: nobody wants its results any more.
using LayerDone = std::function<bool(int layer)>;

class Model {
 public:
  // Loads a Hugging Face folder or a GGUF file (of a split one the first part). NOT_FOUND, INVALID_ARGUMENT or
  // UNIMPLEMENTED name the file, field or tensor and what was expected.
  static absl::StatusOr<std::unique_ptr<Model>> Load(const std::filesystem::path& path, const ModelOptions& options);
  virtual ~Model() = default;

  virtual const ModelConfig& config() const = 0;
  virtual const KvLayout& kv_layout() const = 0;
  // Two workers with the same id compute the same bits: weights, dtypes, page size, kernel family and revision.
  virtual const std::string& numerics_id() const = 0;
  virtual std::string_view kernel_family() const = 0;
  virtual size_t weight_bytes() const = 0;
  // What most products are computed with: the type of the first layer's weights, as they were loaded.
  virtual TensorType weight_type() const = 0;
  // Of weight_bytes(), what a step reads: all but the embedding, of which it looks up rows, unless that is the head
  // too.
  virtual size_t step_bytes() const = 0;
  // What the machine gives at most, reading these weights. Takes about a second; not while Forward runs.
  virtual MachineLimits MeasureLimits() = 0;

  // Runs `batch` against `pool` (of this model's kv_layout()). Not thread-safe: one call at a time. Fails with
  // INVALID_ARGUMENT, and computes nothing, when a token, position or page is out of range; with
  // CANCELLED when `layer_done` said so.
  virtual absl::Status Forward(std::span<const SequenceInput> batch, PagePool& pool, const LayerDone& layer_done,
                               ForwardOutput& output) = 0;
};

}  // namespace baton
