// SPDX-License-Identifier: Apache-2.0
#include "common/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <iterator>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/arguments.h"
#include "common/nearest_word.h"
#include "common/option_schema.h"
#include "common/option_values.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "common/version.h"

namespace baton {
namespace {

namespace values = option_values;
using option_schema::Option;
using option_schema::Schema;
using option_schema::Set;
using option_schema::Shape;

absl::Status Invalid(const auto&... parts) { return absl::InvalidArgumentError(Concat(parts...)); }

// Returns a setter of one scalar, which parses the text and stores the value.
template <typename T, typename Parse>
auto Setter(T* value, Parse parse) {
  return [value, parse = std::move(parse)](const std::vector<std::string>& texts) -> absl::Status {
    BATON_ASSIGN_OR_RETURN(auto parsed, parse(texts.front()));
    *value = static_cast<T>(std::move(parsed));
    return absl::OkStatus();
  };
}

std::string WithDefault(std::string_view help, std::string_view shown) {
  return shown.empty() ? std::string(help) : Concat(help, " (default: ", shown, ")");
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
  const std::string option = extra.substr(0, extra.find('='));
  const std::string name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  std::vector<std::string> known = option_schema::Names(schema);
  known.insert(known.end(), {"config", "help", "version"});
  return Invalid("unknown option ", option, DidYouMean(name, known, "--"));
}

absl::StatusOr<CommandLine> ReadCommandLine(std::string_view program, std::string_view description,
                                            const Schema& schema, int argc, const char* const* argv) {
  CLI::App app{std::string(description), std::string(program)};
  app.set_help_flag("--help,-h", "Print this help and exit");
  app.set_version_flag("--version", Concat(program, " ", BatonVersion()), "Print the version and exit");
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

}  // namespace

class OptionSet::Impl {
 public:
  Impl(std::string_view program, std::string_view description) : program_(program), description_(description) {}

  void Add(Option option) { schema_.push_back(std::move(option)); }

  absl::StatusOr<Outcome> Parse(int argc, const char* const* argv) {
    BATON_ASSIGN_OR_RETURN(CommandLine line, ReadCommandLine(program_, description_, schema_, argc, argv));
    if (!line.answer.empty()) {
      std::cout << line.answer << std::flush;
      return Outcome::kAnswered;
    }
    if (!line.config_path.empty()) BATON_RETURN_IF_ERROR(option_schema::ApplyConfigFile(line.config_path, schema_));
    for (size_t i = 0; i < schema_.size(); ++i) {
      std::vector<std::string>& texts = line.given[i];
      if (texts.empty()) continue;
      if (schema_[i].shape == Shape::kList) texts = SplitAtCommas(texts);
      BATON_RETURN_IF_ERROR(Set(schema_[i], texts, Flag(schema_[i])));
    }
    return Outcome::kRun;
  }

 private:
  static std::vector<std::string> SplitAtCommas(const std::vector<std::string>& texts) {
    std::vector<std::string> all;
    for (const std::string& text : texts) {
      std::vector<std::string> parts = absl::StrSplit(text, ',', absl::SkipEmpty());
      std::move(parts.begin(), parts.end(), std::back_inserter(all));
    }
    return all;
  }

  std::string program_;
  std::string description_;
  Schema schema_;
};

OptionSet::OptionSet(std::string_view program, std::string_view description)
    : impl_(std::make_unique<Impl>(program, description)) {}
OptionSet::~OptionSet() = default;

absl::StatusOr<OptionSet::Outcome> OptionSet::Parse(int argc, const char* const* argv) {
  return impl_->Parse(argc, argv);
}

void OptionSet::Add(std::string_view name, std::string* value, std::string_view help) {
  impl_->Add({.name = std::string(name),
              .type = "TEXT",
              .help = WithDefault(help, *value),
              .set = Setter(value, [](const std::string& text) -> absl::StatusOr<std::string> { return text; })});
}

void OptionSet::Add(std::string_view name, int* value, std::string_view help, int min, int max) {
  impl_->Add({.name = std::string(name),
              .type = "INT",
              .help = WithDefault(help, Concat(*value)),
              .set = Setter(value, [min, max](std::string_view text) { return values::ParseInt(text, min, max); })});
}

void OptionSet::Add(std::string_view name, absl::Duration* value, std::string_view help, absl::Duration min,
                    absl::Duration max) {
  impl_->Add(
      {.name = std::string(name),
       .type = "DURATION",
       .help = WithDefault(help, absl::FormatDuration(*value)),
       .set = Setter(value, [min, max](std::string_view text) { return values::ParseDuration(text, min, max); })});
}

void OptionSet::Add(std::string_view name, ByteSize* value, std::string_view help) {
  impl_->Add({.name = std::string(name),
              .type = "SIZE",
              .help = WithDefault(help, values::FormatByteSize(*value)),
              .set = Setter(value, values::ParseByteSize)});
}

void OptionSet::AddChoice(std::string_view name, std::string* value, std::vector<std::string> choices,
                          std::string_view help) {
  const std::string type = absl::StrJoin(choices, "|");
  auto parse = [choices = std::move(choices)](const std::string& text) -> absl::StatusOr<std::string> {
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) return text;
    return Invalid("expected one of ", absl::StrJoin(choices, ", "));
  };
  impl_->Add({.name = std::string(name),
              .type = type,
              .help = WithDefault(help, *value),
              .set = Setter(value, std::move(parse))});
}

void OptionSet::AddList(std::string_view name, std::vector<std::string>* value, std::string_view help) {
  impl_->Add({.name = std::string(name),
              .type = "TEXT,...",
              .help = WithDefault(help, absl::StrJoin(*value, ",")),
              .shape = Shape::kList,
              .set = [value](const std::vector<std::string>& texts) {
                *value = texts;
                return absl::OkStatus();
              }});
}

void OptionSet::AddList(std::string_view name, std::vector<int>* value, std::string_view help, int min, int max) {
  impl_->Add({.name = std::string(name),
              .type = "INT,...",
              .help = WithDefault(help, absl::StrJoin(*value, ",")),
              .shape = Shape::kList,
              .set = [value, min, max](const std::vector<std::string>& texts) -> absl::Status {
                std::vector<int> parsed;
                for (const std::string& text : texts) {
                  const absl::StatusOr<int64_t> element = values::ParseInt(text, min, max);
                  if (!element.ok())
                    return Invalid("expected whole numbers from ", min, " to ", max, ", separated by commas");
                  parsed.push_back(static_cast<int>(*element));
                }
                *value = std::move(parsed);
                return absl::OkStatus();
              }});
}

}  // namespace baton
