// SPDX-License-Identifier: Apache-2.0
// A model whose layers are in two KV groups, in turn. A third group without layers has larger blocks, so that blocks
// are smaller than their stride.
#pragma once

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/status_macros.h"
#include "engine/formats/checkpoint.h"
#include "engine/formats/model_folder.h"
#include "engine/model/decoder.h"
#include "engine/model/weights.h"

namespace baton::testing {

inline constexpr int kModelGroups = 3;

inline absl::StatusOr<std::unique_ptr<Model>> LoadInGroups(const std::filesystem::path& folder, KvType dtype) {
  BATON_ASSIGN_OR_RETURN(const ModelText text, LoadConfigJson(folder));
  BATON_ASSIGN_OR_RETURN(ModelConfig config, ParseModelConfig(text.text, text.origin));
  BATON_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(folder));
  BATON_ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend, CreateBackend({}));
  BATON_ASSIGN_OR_RETURN(ModelWeights weights, LoadWeights(config, checkpoint, {}, *backend, nullptr));
  const KvBlock block{.kv_heads = config.kv_heads, .head_dim = config.head_dim, .dtype = dtype};
  KvBlock larger = block;
  ++larger.kv_heads;
  std::vector<int> group_of_layer(config.layers);
  for (int layer = 0; layer < config.layers; ++layer) group_of_layer[layer] = layer % 2;
  const TensorType type = weights.type;
  return std::make_unique<Decoder>(std::move(config), KvLayout({block, block, larger}, group_of_layer), "grouped",
                                   std::move(backend), std::move(weights), type);
}

}  // namespace baton::testing
