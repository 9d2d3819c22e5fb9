// SPDX-License-Identifier: Apache-2.0
#include "common/program_description.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "common/strings.h"

namespace baton {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> NamesOf(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back(Concat("-", name));
  for (const std::string& name : option.get_lnames()) names.push_back(Concat("--", name));
  if (names.empty()) names.push_back(option.get_name());  // a positional argument
  return names;
}

std::vector<std::string> SortedNames(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  names.reserve(options.size());
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::sort(names.begin(), names.end());
  return names;
}

Json Describe(const CLI::Option& option) {
  return {{"names", NamesOf(option)},
          {"type", option.get_type_size() == 0 ? "" : option.get_type_name()},  // empty: a flag without a value
          {"default", option.get_default_str()},
          {"help", option.get_description()},
          {"required", option.get_required()},
          {"needs", SortedNames(option.get_needs())},
          {"excludes", SortedNames(option.get_excludes())}};
}

// Appends a description for each group of the options that --help shows. A group of options is a child without a name,
// or a name that options carry. A child has the parent's --help once more.
void AppendGroups(const CLI::App& app, Json* groups) {
  for (const std::string& name : app.get_groups()) {
    if (name.empty()) continue;
    const bool is_child = app.get_name().empty();
    Json group = {{"name", is_child ? app.get_group() : name}, {"options", Json::array()}};
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_group() != name || (is_child && option == app.get_help_ptr())) continue;
      group["options"].push_back(Describe(*option));
    }
    groups->push_back(std::move(group));
  }
}

Json Describe(const CLI::App& app) {
  Json groups = Json::array();
  Json commands = Json::array();
  AppendGroups(app, &groups);
  for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (child->get_name().empty()) {
      AppendGroups(*child, &groups);
    } else {
      commands.push_back(Describe(*child));
    }
  }
  return {{"name", app.get_name()},
          {"help", app.get_description()},
          {"footer", app.get_footer()},
          {"groups", std::move(groups)},
          {"commands", std::move(commands)}};
}

}  // namespace

void AddDescribeFlag(CLI::App& app) {
  const auto describe = [&app] { throw CLI::CallForVersion(Describe(app).dump(), 0); };
  app.add_flag_callback("--describe", describe)->group("");  // the group without a name is hidden
}

}  // namespace baton
