// SPDX-License-Identifier: Apache-2.0
#include "golden.h"

#include <nlohmann/json.hpp>

#include "absl/strings/strip.h"
#include "tests/files.h"

namespace baton::testing {
namespace {

std::vector<GoldenCase> Load() {
  const auto golden = nlohmann::json::parse(ReadFile(SourceFolder() / "tests/golden/demo/golden.json"));
  std::vector<GoldenCase> cases;
  for (const nlohmann::json& entry : golden["cases"]) {
    const std::string prompt = entry["prompt"];
    cases.push_back({.prompt = std::string(absl::StripPrefix(prompt, "<|begin_of_text|>")),
                     .prompt_ids = entry["prompt_ids"],
                     .greedy_ids = entry["chat"]["greedy_ids"],
                     .greedy_text = entry["chat"]["greedy_text"],
                     .first_stop = entry["chat"]["first_stop"],
                     .top_ids = entry["chat"]["top_ids"],
                     .top_logits = entry["chat"]["top_logits"],
                     .min_margin = entry["chat"]["min_margin"]});
  }
  return cases;
}

}  // namespace

const std::vector<GoldenCase>& GoldenCases() {
  static const std::vector<GoldenCase> cases = Load();
  return cases;
}

}  // namespace baton::testing
