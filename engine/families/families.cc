// SPDX-License-Identifier: Apache-2.0
// The registry of families: one entry each.
#include <algorithm>
#include <iterator>

#include "absl/strings/str_join.h"
#include "engine/families/family.h"
#include "engine/families/llama.h"
#include "engine/families/qwen3.h"

namespace baton {
namespace {

constexpr const ModelFamily* kFamilies[] = {&kLlama, &kQwen3};

const ModelFamily* Find(std::string_view ModelFamily::* name, std::string_view value) {
  const auto* const found = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                         [&](const ModelFamily* family) { return family->*name == value; });
  return found == std::end(kFamilies) ? nullptr : *found;
}

std::string Join(std::string_view ModelFamily::* name) {
  return absl::StrJoin(kFamilies, ", ",
                       [&](std::string* out, const ModelFamily* family) { out->append(family->*name); });
}

}  // namespace

int ModelFamily::InterleavedHeads(std::string_view hugging_face, int heads, int kv_heads) const {
  if (!gguf_interleaves_q_and_k) return 0;
  if (hugging_face.ends_with(tensor(TensorRole::kQ).hugging_face)) return heads;
  return hugging_face.ends_with(tensor(TensorRole::kK).hugging_face) ? kv_heads : 0;
}

const ModelFamily* FindHuggingFaceFamily(std::string_view architecture) {
  return Find(&ModelFamily::hugging_face, architecture);
}
const ModelFamily* FindGgufFamily(std::string_view architecture) { return Find(&ModelFamily::gguf, architecture); }

std::string HuggingFaceFamilyNames() { return Join(&ModelFamily::hugging_face); }
std::string GgufFamilyNames() { return Join(&ModelFamily::gguf); }

}  // namespace baton
