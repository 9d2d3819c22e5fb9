// SPDX-License-Identifier: Apache-2.0
#include "cli/tools/presets.h"

#include <algorithm>

namespace baton {
namespace {

// TinyLlama's own context has 2048 tokens. The longer context here allows measurements with long prompts.
constexpr ModelPreset kPresets[] = {
    {"110m", 768, 12, 12, 12, 64, 2048, 32000, 1024, true, 10000, std::nullopt},
    {"tinyllama-1.1b", 2048, 22, 32, 4, 64, 5632, 32000, 32768, false, 10000, std::nullopt},
    {"llama-3.2-1b", 2048, 16, 32, 8, 64, 8192, 128256, 131072, true, 500000, Llama3Scaling{32, 1, 4, 8192}},
    {"llama-3-8b", 4096, 32, 32, 8, 128, 14336, 128256, 8192, false, 500000, std::nullopt},
};

}  // namespace

std::span<const ModelPreset> ModelPresets() { return kPresets; }

const ModelPreset* FindModelPreset(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kPresets), std::end(kPresets), [&](const auto& p) { return p.name == name; });
  return found == std::end(kPresets) ? nullptr : found;
}

}  // namespace baton
