// SPDX-License-Identifier: Apache-2.0
#include "common/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/arguments.h"
#include "common/log.h"
#include "common/program_description.h"
#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {
namespace option_schema {

absl::Status Set(const Option& option, const std::vector<std::string>& texts, std::string_view where) {
  absl::Status status = option.set(texts);
  if (status.ok()) return status;
  return Invalid(where, ": \"", absl::StrJoin(texts, ","), "\" is not valid, ", status.message());
}

std::vector<std::string> Names(const Schema& schema) {
  std::vector<std::string> names;
  names.reserve(schema.size());
  for (const Option& option : schema) names.push_back(option.name);
  return names;
}

}  // namespace option_schema

namespace {

using option_schema::Invalid;
using option_schema::Option;
using option_schema::Schema;
using option_schema::Shape;

// Each function that parses a value fails with INVALID_ARGUMENT that says what was expected. The caller adds the
// option's name and the text.
absl::Status Expected(const auto&... parts) { return absl::InvalidArgumentError(Concat("expected ", parts...)); }

struct Unit {
  std::string_view name;
  int shift;
};
constexpr Unit kUnits[] = {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"B", 0}};

absl::StatusOr<int64_t> ParseInt(std::string_view text, int64_t min, int64_t max) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(ToAbsl(text), &value) || value < min || value > max) {
    return Expected("a whole number from ", min, " to ", max);
  }
  return value;
}

absl::StatusOr<double> ParseNumber(std::string_view text, double min, double max) {
  double value = 0;
  if (!absl::SimpleAtod(ToAbsl(text), &value) || !(value >= min && value <= max)) {
    return Expected("a number from ", min, " to ", max);
  }
  return value;
}

absl::StatusOr<absl::Duration> ParseDuration(std::string_view text, absl::Duration min, absl::Duration max) {
  absl::Duration value;
  if (!absl::ParseDuration(ToAbsl(text), &value) || value < min || value > max) {
    return Expected("a duration from ", absl::FormatDuration(min), " to ", absl::FormatDuration(max),
                    ", such as 250ms, 3s or 5m");
  }
  return value;
}

absl::StatusOr<ByteSize> ParseByteSize(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view unit_name = text.substr(digits);
  const auto* unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                  [&](const Unit& candidate) { return candidate.name == unit_name; });
  uint64_t count = 0;
  if (unit == std::end(kUnits) || !absl::SimpleAtoi(ToAbsl(text.substr(0, digits)), &count) ||
      count > std::numeric_limits<uint64_t>::max() >> unit->shift) {
    return Expected("a size with a unit (B, KiB, MiB, GiB, TiB), such as 512MiB");
  }
  return ByteSize{count << unit->shift};
}

// Formats a size in the largest unit that divides the size, such as "512MiB".
std::string FormatByteSize(ByteSize size) {
  const auto* unit = std::find_if(std::begin(kUnits), std::end(kUnits), [&](const Unit& candidate) {
    return candidate.shift == 0 ||
           (size.bytes != 0 && (size.bytes >> candidate.shift) << candidate.shift == size.bytes);
  });
  return Concat(size.bytes >> unit->shift, unit->name);
}

// Returns a setter of one scalar, which parses the text and stores the value.
template <typename T, typename Parse>
auto Setter(T* value, Parse parse) {
  return [value, parse = std::move(parse)](const std::vector<std::string>& texts) -> absl::Status {
    BATON_ASSIGN_OR_RETURN(auto parsed, parse(texts.front()));
    *value = static_cast<T>(std::move(parsed));
    return absl::OkStatus();
  };
}

Option MakeOption(std::string_view name, std::string type, std::string_view help, std::string_view default_text,
                  decltype(Option::set) set, Shape shape = Shape::kScalar) {
  return {.name = std::string(name),
          .type = std::move(type),
          .help = default_text.empty() ? std::string(help) : Concat(help, " (default: ", default_text, ")"),
          .shape = shape,
          .set = std::move(set)};
}

// The command line as CLI11 splits it up.
struct CommandLine {
  std::vector<std::vector<std::string>> given;  // the texts given for each option, in the schema's order
  std::string config_path;
  std::string answer;  // to --help or --version; with neither option, empty
};

std::string Flag(const Option& option) { return Concat("--", option.name); }

bool IsFlag(const std::string& text, const Schema& schema) {
  return std::any_of(schema.begin(), schema.end(), [&](const Option& option) { return text == Flag(option); });
}

// `extra` is the first argument that is neither an option nor an option's value.
absl::Status UnknownArgument(const std::string& extra, const Schema& schema) {
  if (!extra.starts_with("-")) return Invalid("unexpected argument \"", extra, "\"");
  std::vector<std::string> known = option_schema::Names(schema);
  known.insert(known.end(), {"config", "help", "version"});
  return Invalid(UnknownOption(extra, known));
}

absl::StatusOr<CommandLine> ReadCommandLine(std::string_view program, std::string_view description,
                                            const Schema& schema, int argc, const char* const* argv) {
  CLI::App app{std::string(description), std::string(program)};
  app.set_help_flag("--help,-h", "Print this help and exit");
  app.set_version_flag("--version", Concat(program, " ", BatonVersion()), "Print the version and exit");
  AddDescribeFlag(app);
  app.get_formatter()->column_width(36);
  app.allow_extras();
  CommandLine result;
  app.add_option("--config", result.config_path,
                 "YAML file with the options below; the command line wins over the file")
      ->type_name("FILE");
  std::vector<const CLI::Option*> handles;
  for (const Option& option : schema) {
    CLI::Option* handle =
        app.add_option(Flag(option), CLI::callback_t([](const CLI::results_t&) { return true; }), option.help);
    handle->type_name(option.type)->expected(1);
    if (option.shape == Shape::kList) handle->take_all();
    handles.push_back(handle);
  }
  try {
    app.parse(ReversedArguments(argc, argv));
  } catch (const CLI::CallForHelp&) {
    result.answer = app.help();
    return result;
  } catch (const CLI::CallForVersion& version) {
    result.answer = Concat(version.what(), "\n");
    return result;
  } catch (const CLI::ParseError& error) {
    return Invalid(error.what());
  }
  if (const std::vector<std::string> extras = app.remaining(); !extras.empty()) {
    return UnknownArgument(extras.front(), schema);
  }
  for (const CLI::Option* handle : handles) {
    result.given.push_back(handle->results());
    for (const std::string& text : result.given.back()) {
      // CLI11 takes any next argument for the value.
      if (IsFlag(text, schema)) return Invalid(handle->get_name(), ": expected a value, not the option ", text);
    }
  }
  return result;
}

std::vector<std::string> SplitAtCommas(const std::vector<std::string>& texts) {
  std::vector<std::string> all;
  for (const std::string& text : texts) {
    std::vector<std::string> parts = absl::StrSplit(text, ',', absl::SkipEmpty());
    std::move(parts.begin(), parts.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace

absl::StatusOr<OptionSet::Outcome> OptionSet::Parse(int argc, const char* const* argv) {
  BATON_ASSIGN_OR_RETURN(const CommandLine line, ReadCommandLine(program_, description_, schema_, argc, argv));
  if (!line.answer.empty()) {
    std::cout << line.answer << std::flush;
    return Outcome::kAnswered;
  }
  const auto apply_given = [&]() -> absl::Status {
    if (!line.config_path.empty()) BATON_RETURN_IF_ERROR(option_schema::ApplyConfigFile(line.config_path, schema_));
    for (size_t i = 0; i < schema_.size(); ++i) {
      const std::vector<std::string>& texts = line.given[i];
      if (texts.empty()) continue;
      const bool is_list = schema_[i].shape == Shape::kList;
      BATON_RETURN_IF_ERROR(option_schema::Set(schema_[i], is_list ? SplitAtCommas(texts) : texts, Flag(schema_[i])));
    }
    return absl::OkStatus();
  };
  BATON_RETURN_IF_ERROR(apply_given());
  if (preset_ == nullptr || preset_->empty()) return Outcome::kRun;
  BATON_RETURN_IF_ERROR(ApplyPreset());
  BATON_RETURN_IF_ERROR(apply_given());  // again: what is given wins
  return Outcome::kRun;
}

absl::Status OptionSet::ApplyPreset() const {
  for (const Preset& preset : presets_) {
    if (preset.name != *preset_) continue;
    for (const auto& [name, text] : preset.values) {
      const auto option = std::find_if(schema_.begin(), schema_.end(), [&](const Option& o) { return o.name == name; });
      const std::string where = Concat("preset ", preset.name, ": ", name);
      if (option == schema_.end()) return Invalid(where, ": there is no such option");
      BATON_RETURN_IF_ERROR(option_schema::Set(*option, {text}, where));
    }
  }
  return absl::OkStatus();
}

int OptionSet::RunProgram(int argc, const char* const* argv, absl::FunctionRef<absl::Status()> run) {
  const absl::StatusOr<Outcome> outcome = Parse(argc, argv);
  const absl::Status status = outcome.ok() && *outcome == Outcome::kRun ? run() : outcome.status();
  if (status.ok()) return 0;
  if (LogsAsJson()) {
    Log(LogLevel::kError, "program.failed", {{"program", program_}, {"error", std::string(status.message())}});
  } else {
    std::fprintf(stderr, "%s: %s\n", program_.c_str(), std::string(status.message()).c_str());
  }
  return 1;
}

void OptionSet::Add(std::string_view name, std::string* value, std::string_view help) {
  const auto parse = [](const std::string& text) -> absl::StatusOr<std::string> { return text; };
  schema_.push_back(MakeOption(name, "TEXT", help, *value, Setter(value, parse)));
}

void OptionSet::Add(std::string_view name, int* value, std::string_view help, int min, int max) {
  const auto parse = [min, max](std::string_view text) { return ParseInt(text, min, max); };
  schema_.push_back(MakeOption(name, "INT", help, Concat(*value), Setter(value, parse)));
}

void OptionSet::Add(std::string_view name, double* value, std::string_view help, double min, double max) {
  const auto parse = [min, max](std::string_view text) { return ParseNumber(text, min, max); };
  schema_.push_back(MakeOption(name, "NUMBER", help, Concat(*value), Setter(value, parse)));
}

void OptionSet::Add(std::string_view name, absl::Duration* value, std::string_view help, absl::Duration min,
                    absl::Duration max) {
  const auto parse = [min, max](std::string_view text) { return ParseDuration(text, min, max); };
  schema_.push_back(MakeOption(name, "DURATION", help, absl::FormatDuration(*value), Setter(value, parse)));
}

void OptionSet::Add(std::string_view name, ByteSize* value, std::string_view help) {
  schema_.push_back(MakeOption(name, "SIZE", help, FormatByteSize(*value), Setter(value, ParseByteSize)));
}

void OptionSet::AddChoice(std::string_view name, std::string* value, std::vector<std::string> choices,
                          std::string_view help) {
  const std::string type = absl::StrJoin(choices, "|");
  auto parse = [choices = std::move(choices)](const std::string& text) -> absl::StatusOr<std::string> {
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) return text;
    return Invalid("expected one of ", absl::StrJoin(choices, ", "));
  };
  schema_.push_back(MakeOption(name, type, help, *value, Setter(value, std::move(parse))));
}

void OptionSet::AddPresets(std::string_view name, std::string* value, std::vector<Preset> presets) {
  std::string help = "values for other options, which win where they are given";
  std::vector<std::string> names;
  for (const Preset& preset : presets) {
    names.push_back(preset.name);
    const auto assign = [](std::string* out, const auto& pair) { *out += Concat(pair.first, "=", pair.second); };
    help += Concat(". ", preset.name, ": ", preset.help);
    if (!preset.values.empty()) help += Concat(" (", absl::StrJoin(preset.values, ", ", assign), ")");
  }
  AddChoice(name, value, std::move(names), help);
  presets_ = std::move(presets);
  preset_ = value;
}

void OptionSet::AddList(std::string_view name, std::vector<std::string>* value, std::string_view help) {
  const auto set = [value](const std::vector<std::string>& texts) {
    *value = texts;
    return absl::OkStatus();
  };
  schema_.push_back(MakeOption(name, "TEXT,...", help, absl::StrJoin(*value, ","), set, Shape::kList));
}

void OptionSet::AddList(std::string_view name, std::vector<int>* value, std::string_view help, int min, int max) {
  const auto set = [value, min, max](const std::vector<std::string>& texts) -> absl::Status {
    std::vector<int> parsed;
    for (const std::string& text : texts) {
      const absl::StatusOr<int64_t> element = ParseInt(text, min, max);
      if (!element.ok()) return Invalid("expected whole numbers from ", min, " to ", max, ", separated by commas");
      parsed.push_back(static_cast<int>(*element));
    }
    *value = std::move(parsed);
    return absl::OkStatus();
  };
  schema_.push_back(MakeOption(name, "INT,...", help, absl::StrJoin(*value, ","), set, Shape::kList));
}

}  // namespace baton
