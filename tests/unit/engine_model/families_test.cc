// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "engine/families/family.h"

namespace baton {
namespace {

std::vector<const ModelFamily*> Families() {
  std::vector<const ModelFamily*> families;
  const std::vector<std::string> names = absl::StrSplit(HuggingFaceFamilyNames(), ", ");
  for (const std::string& name : names) families.push_back(FindHuggingFaceFamily(name));
  return families;
}

TEST(FamiliesTest, EachServedFamilyIsFoundByBothOfItsNames) {
  EXPECT_EQ(HuggingFaceFamilyNames(), "LlamaForCausalLM, Qwen3ForCausalLM");
  EXPECT_EQ(GgufFamilyNames(), "llama, qwen3");
  for (const ModelFamily* const family : Families()) {
    ASSERT_NE(family, nullptr);
    EXPECT_EQ(FindGgufFamily(family->gguf), family);
  }
}

TEST(FamiliesTest, AnUnknownNameIsNoFamily) {
  EXPECT_EQ(FindHuggingFaceFamily("MambaForCausalLM"), nullptr);
  EXPECT_EQ(FindHuggingFaceFamily("llama"), nullptr);
  EXPECT_EQ(FindGgufFamily("mamba"), nullptr);
  EXPECT_EQ(FindGgufFamily(""), nullptr);
}

TEST(FamiliesTest, EachTensorHasANameOfItsOwnInBothForms) {
  for (const ModelFamily* const family : Families()) {
    std::set<std::string_view> hugging_face;
    std::set<std::string_view> gguf;
    for (const TensorName& name : family->tensors) {
      EXPECT_TRUE(!name.hugging_face.empty() && hugging_face.insert(name.hugging_face).second) << name.hugging_face;
      EXPECT_TRUE(!name.gguf.empty() && gguf.insert(name.gguf).second) << name.gguf;
    }
  }
}

TEST(FamiliesTest, OnlyLlamaInterleavesTheHeadsOfQAndK) {
  const ModelFamily& llama = *FindGgufFamily("llama");
  EXPECT_EQ(llama.InterleavedHeads("model.layers.3.self_attn.q_proj.weight", 8, 2), 8);
  EXPECT_EQ(llama.InterleavedHeads("model.layers.3.self_attn.k_proj.weight", 8, 2), 2);
  EXPECT_EQ(llama.InterleavedHeads("model.layers.3.self_attn.v_proj.weight", 8, 2), 0);
  EXPECT_EQ(FindGgufFamily("qwen3")->InterleavedHeads("model.layers.3.self_attn.q_proj.weight", 8, 2), 0);
}

}  // namespace
}  // namespace baton
