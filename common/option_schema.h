// What OptionSet knows of each option. Private to the options parser.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace baton::option_schema {

enum class Shape { kScalar, kList };

struct Option {
  std::string name;
  std::string type;  // as --help shows it
  std::string help;
  Shape shape = Shape::kScalar;
  // Takes the texts given (one, unless it is a list) or says what it expected instead.
  std::function<absl::Status(const std::vector<std::string>&)> set;
};

using Schema = std::vector<Option>;

// Sets an option; an error starts with `where` (a file and line, or the flag) and the texts.
absl::Status Set(const Option& option, const std::vector<std::string>& texts, std::string_view where);

// "; did you mean <lead>x?" when an option's name is at most two letters off `name`, else nothing.
std::string Suggestion(const Schema& schema, std::string_view name, std::string_view lead);

// Applies a YAML file, key by key. INVALID_ARGUMENT names the file, the line and the key.
absl::Status ApplyConfigFile(const std::string& path, const Schema& schema);

}  // namespace baton::option_schema
