// SPDX-License-Identifier: Apache-2.0
// The differences between the engine's families of models, as data. A family is one file of this folder and an entry in
// families.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace baton {

enum class AttentionKind : uint8_t { kFull };
enum class NormKind : uint8_t { kNone, kRms };
enum class FeedForwardKind : uint8_t { kSiluGated };

// The parts of every layer. Each layer also has an RMSNorm before its attention and before its feed-forward part.
struct LayerParts {
  AttentionKind attention = AttentionKind::kFull;
  NormKind head_norm = NormKind::kNone;  // over head_dim of each q and k head, before RoPE
  FeedForwardKind feed_forward = FeedForwardKind::kSiluGated;
};

// How config.json names a kind, in layer_types and hidden_act.
constexpr std::string_view ConfigName(AttentionKind) { return "full_attention"; }
constexpr std::string_view ConfigName(FeedForwardKind) { return "silu"; }

// A tensor's name in a Hugging Face checkpoint and in a GGUF file.
struct TensorName {
  std::string_view hugging_face;
  std::string_view gguf;
};

// Tensors of a layer follow those of the model; their names follow the layer's prefix.
enum class TensorRole : uint8_t {
  kEmbedding,
  kFinalNorm,
  kHead,
  kAttentionNorm,
  kQ,
  kK,
  kV,
  kQNorm,
  kKNorm,
  kOutput,
  kMlpNorm,
  kGate,
  kUp,
  kDown
};
inline constexpr size_t kModelTensors = 3;
inline constexpr size_t kTensorRoles = 14;

struct ModelFamily {
  std::string_view hugging_face;          // "architectures" of config.json
  std::string_view gguf;                  // "general.architecture" of GGUF files
  bool gguf_interleaves_q_and_k = false;  // see HuggingFaceRow
  LayerParts parts;
  TensorName layer_prefix;                       // before the layer's number and a dot
  std::array<TensorName, kTensorRoles> tensors;  // by TensorRole

  // For a GGUF file: by how many heads the rows of the tensor `hugging_face` are interleaved; 0: not.
  int InterleavedHeads(std::string_view hugging_face, int heads, int kv_heads) const;
  const TensorName& tensor(TensorRole role) const { return tensors[static_cast<size_t>(role)]; }
};

// Null for an unknown name.
const ModelFamily* FindHuggingFaceFamily(std::string_view architecture);
const ModelFamily* FindGgufFamily(std::string_view architecture);

// The names of the served families, for errors: "A, B".
std::string HuggingFaceFamilyNames();
std::string GgufFamilyNames();

}  // namespace baton
