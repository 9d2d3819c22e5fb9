// SPDX-License-Identifier: Apache-2.0
#include "cli/flags/flags.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/address.h"
#include "common/status_macros.h"

namespace baton {
namespace {

absl::Status SetTarget(const std::string& text, std::string* target) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(text);
  if (!parsed.ok() || parsed->port == 0) {
    return absl::InvalidArgumentError("expected HOST:PORT with a port of 1 to 65535");
  }
  *target = text;
  return absl::OkStatus();
}

absl::Status AppendTokenIds(const std::string& text, std::vector<int32_t>* ids) {
  for (const absl::string_view piece : absl::StrSplit(text, ',')) {
    const absl::StatusOr<uint64_t> id = ParseWholeNumber(std::string(piece), 0, INT32_MAX);
    if (!id.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected token ids from 0 to ", INT32_MAX, ", separated by commas, such as 1,17,4"));
    }
    ids->push_back(static_cast<int32_t>(*id));
  }
  return absl::OkStatus();
}

}  // namespace

CLI::Option* AddFlag(CLI::App& app, const std::string& name, const std::string& type, const std::string& help,
                     std::function<absl::Status(const std::string&)> set, const std::string& default_text) {
  const auto take = [name, set = std::move(set)](const CLI::results_t& texts) {
    for (const std::string& text : texts) {
      const absl::Status status = set(text);
      if (!status.ok()) {
        throw CLI::ValidationError(name, absl::StrCat("\"", text, "\", ", std::string(status.message())));
      }
    }
    return true;
  };
  return app.add_option(name, take, help)->type_name(type)->expected(1)->default_str(default_text);
}

CLI::Option* AddTarget(CLI::App& app, std::string* target) {
  const auto set = [target](const std::string& text) { return SetTarget(text, target); };
  return AddFlag(app, "--target", "TEXT", "HOST:PORT of the router", set, *target);
}

CLI::Option* AddTokenIds(CLI::App& app, const std::string& name, std::vector<int32_t>* ids, const std::string& help) {
  return AddFlag(app, name, "INT,...", help, [ids](const std::string& text) { return AppendTokenIds(text, ids); })
      ->take_all();
}

CLI::Option* AddWholeNumbers(CLI::App& app, const std::string& name, std::vector<int>* numbers, const std::string& help,
                             int min, int max) {
  const auto set = [numbers, min, max](const std::string& text) {
    numbers->clear();
    for (const absl::string_view part : absl::StrSplit(text, ',')) {
      BATON_ASSIGN_OR_RETURN(const uint64_t number, ParseWholeNumber(std::string(part), min, max));
      numbers->push_back(static_cast<int>(number));
    }
    return absl::OkStatus();
  };
  return AddFlag(app, name, "INT,...", help, set, absl::StrJoin(*numbers, ","));
}

absl::StatusOr<uint64_t> ParseWholeNumber(const std::string& text, uint64_t min, uint64_t max) {
  uint64_t number = 0;
  if (absl::SimpleAtoi(text, &number) && number >= min && number <= max) return number;
  return absl::InvalidArgumentError(absl::StrCat("expected a whole number from ", min, " to ", max));
}

absl::StatusOr<double> ParseNumber(const std::string& text, double min, double max) {
  double number = 0;
  // The comparisons are false for NaN.
  if (absl::SimpleAtod(text, &number) && number >= min && number <= max) return number;
  if (min == -kInfinity && max == kInfinity) return absl::InvalidArgumentError("expected a number, such as 0.5");
  return absl::InvalidArgumentError(absl::StrCat("expected a number from ", min, " to ", max));
}

}  // namespace baton
