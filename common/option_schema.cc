// SPDX-License-Identifier: Apache-2.0
#include "common/option_schema.h"

#include "absl/strings/str_join.h"
#include "common/strings.h"

namespace baton::option_schema {

absl::Status Set(const Option& option, const std::vector<std::string>& texts, std::string_view where) {
  absl::Status status = option.set(texts);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      Concat(where, ": \"", absl::StrJoin(texts, ","), "\" is not valid, ", status.message()));
}

std::vector<std::string> Names(const Schema& schema) {
  std::vector<std::string> names;
  names.reserve(schema.size());
  for (const Option& option : schema) names.push_back(option.name);
  return names;
}

}  // namespace baton::option_schema
