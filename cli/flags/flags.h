// SPDX-License-Identifier: Apache-2.0
// Flags that check their values while the command line is parsed. A usage error names the flag, the text and what was
// expected. CLI11's own conversions take -1 for the greatest number, "010" for eight and an empty list for a zero.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace baton {

// The variables that receive the values must outlive the parse.

// Adds a flag with one value. `type` and `default_text` are for --help. `set` stores the text, or its error says what
// was expected.
CLI::Option* AddFlag(CLI::App& app, const std::string& name, const std::string& type, const std::string& help,
                     std::function<absl::Status(const std::string&)> set, const std::string& default_text = "");

// Adds --target, the router's address. `target` holds the default.
CLI::Option* AddTarget(CLI::App& app, std::string* target);

// Adds a flag that takes token ids, separated by commas. The flag may be repeated.
CLI::Option* AddTokenIds(CLI::App& app, const std::string& name, std::vector<int32_t>* ids, const std::string& help);

// Adds a flag that takes whole numbers from `min` to `max`, separated by commas. `numbers` holds the default.
CLI::Option* AddWholeNumbers(CLI::App& app, const std::string& name, std::vector<int>* numbers, const std::string& help,
                             int min, int max);

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Each fails with INVALID_ARGUMENT that says what was expected.
absl::StatusOr<uint64_t> ParseWholeNumber(const std::string& text, uint64_t min, uint64_t max);
absl::StatusOr<double> ParseNumber(const std::string& text, double min, double max);

// Returns `value` as --help shows a default. A std::optional shows none.
template <typename Value>
std::string DefaultText(const Value& value) {
  if constexpr (std::is_arithmetic_v<Value>) return absl::StrCat(value);
  return "";
}

// Adds a flag with a whole number. `Value` is a type that holds the numbers from `min` to `max`, or a std::optional of
// such a type. `value` holds the default.
template <typename Value>
CLI::Option* AddWholeNumber(CLI::App& app, const std::string& name, Value* value, const std::string& help, uint64_t min,
                            uint64_t max) {
  const auto set = [value, min, max](const std::string& text) {
    const absl::StatusOr<uint64_t> number = ParseWholeNumber(text, min, max);
    if (number.ok()) *value = *number;
    return number.status();
  };
  return AddFlag(app, name, "INT", help, set, DefaultText(*value));
}

// Adds a flag with a number. Sampling flags have no limits here: the router checks them.
template <typename Value>
CLI::Option* AddNumber(CLI::App& app, const std::string& name, Value* value, const std::string& help,
                       double min = -kInfinity, double max = kInfinity) {
  const auto set = [value, min, max](const std::string& text) {
    const absl::StatusOr<double> number = ParseNumber(text, min, max);
    if (number.ok()) *value = *number;
    return number.status();
  };
  return AddFlag(app, name, "NUMBER", help, set, DefaultText(*value));
}

// The names that a flag takes, and what they stand for.
template <typename Meaning>
using Choices = std::vector<std::pair<std::string, Meaning>>;

// Adds a flag that takes one of `choices`.
template <typename Meaning, typename Value>
CLI::Option* AddChoice(CLI::App& app, const std::string& name, Value* value, const std::string& help,
                       Choices<Meaning> choices) {
  std::vector<std::string> names;
  for (const auto& [choice, meaning] : choices) names.push_back(choice);
  const std::string type = absl::StrJoin(names, "|");
  const auto set = [value, names, choices = std::move(choices)](const std::string& text) {
    for (const auto& [choice, meaning] : choices) {
      if (choice == text) {
        *value = meaning;
        return absl::OkStatus();
      }
    }
    return absl::InvalidArgumentError(absl::StrCat("expected one of ", absl::StrJoin(names, ", ")));
  };
  return AddFlag(app, name, type, help, set);
}

}  // namespace baton
