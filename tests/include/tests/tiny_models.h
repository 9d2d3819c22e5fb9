// SPDX-License-Identifier: Apache-2.0
// Where the committed models are: the tiny random ones that tests/golden/reference.py wrote, and the demo
// models.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/files.h"

namespace baton::testing {

// "llama_gqa", "qwen3", ... A Hugging Face folder of under 100 KB, without a tokenizer; every token id below 67 is
// valid.
inline std::filesystem::path TinyModel(const std::string& name) {
  return SourceFolder() / "tests" / "golden" / "tiny" / name;
}

inline std::vector<std::string> TinyModelNames() {
  return {"llama_gqa",  "llama_mqa_tied", "llama_mha",     "llama_rope_linear", "llama_rope_llama3",    "qwen3",
          "llama_bf16", "llama_f16",      "llama_sharded", "qwen3_mqa_untied",  "qwen3_mha_rope_linear"};
}

// "demo-chat", which is installed, or "demo-draft", a smaller one that only tests use.
inline std::filesystem::path DemoModel(const std::string& name) {
  return SourceFolder() / (name == "demo-draft" ? "tests/golden" : "models") / name;
}

}  // namespace baton::testing
