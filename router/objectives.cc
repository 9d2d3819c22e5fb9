// SPDX-License-Identifier: Apache-2.0
#include "router/objectives.h"

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/strings.h"

namespace baton::router {
namespace {

constexpr absl::Duration kLongest = absl::Hours(1);

bool ReadObjective(std::string_view text, absl::Duration& objective) {
  return absl::ParseDuration(ToAbsl(text), &objective) && objective >= absl::ZeroDuration() && objective <= kLongest;
}

}  // namespace

absl::StatusOr<DefaultObjectives> DefaultObjectives::Parse(Objectives others, std::span<const std::string> entries) {
  DefaultObjectives defaults;
  defaults.others_ = others;
  for (const std::string& entry : entries) {
    const std::string_view text = entry;
    const size_t equals = text.rfind('=');  // a model's name may have one
    const size_t slash = text.rfind('/');
    Objectives objectives;
    if (equals == 0 || equals == std::string_view::npos || slash == std::string_view::npos || slash < equals ||
        !ReadObjective(text.substr(equals + 1, slash - equals - 1), objectives.ttft) ||
        !ReadObjective(text.substr(slash + 1), objectives.tpot)) {
      return absl::InvalidArgumentError(
          absl::StrCat(entry, "; expected MODEL=TTFT/TPOT with times of at most 1h, such as llama=500ms/30ms"));
    }
    if (!defaults.models_.try_emplace(std::string(text.substr(0, equals)), objectives).second) {
      return absl::InvalidArgumentError(absl::StrCat(entry, ": the model has another entry"));
    }
  }
  return defaults;
}

const Objectives& DefaultObjectives::Of(const std::string& model) const {
  const auto found = models_.find(model);
  return found == models_.end() ? others_ : found->second;
}

}  // namespace baton::router
