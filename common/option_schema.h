// SPDX-License-Identifier: Apache-2.0
// The entry of an option in an OptionSet: a name, a help text and a setter. Private to the options parser.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/strings.h"

namespace baton::option_schema {

absl::Status Invalid(const auto&... parts) { return absl::InvalidArgumentError(Concat(parts...)); }

enum class Shape { kScalar, kList };

struct Option {
  std::string name;
  std::string type;  // as --help shows it
  std::string help;
  Shape shape = Shape::kScalar;
  // Stores the given texts: one text, unless the option is a list. The error says what was expected.
  std::function<absl::Status(const std::vector<std::string>&)> set;
};

using Schema = std::vector<Option>;

// Sets an option. An error starts with `where` (a file and line, or the flag) and the texts.
absl::Status Set(const Option& option, const std::vector<std::string>& texts, std::string_view where);

// Returns the options' names, in the schema's order.
std::vector<std::string> Names(const Schema& schema);

// Applies a YAML file, key by key. INVALID_ARGUMENT names the file, the line and the key.
absl::Status ApplyConfigFile(const std::string& path, const Schema& schema);

}  // namespace baton::option_schema
