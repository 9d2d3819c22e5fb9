// SPDX-License-Identifier: Apache-2.0
// Reads options from a YAML file.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/nearest_word.h"
#include "common/option_schema.h"
#include "common/status_macros.h"
#include "common/strings.h"

namespace baton::option_schema {
namespace {

constexpr std::streamoff kMaxBytes = 1 << 20;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Invalid("--config: cannot open \"", path, "\"");
  std::string text(kMaxBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return Invalid("--config: cannot read \"", path, "\"");
  if (file.gcount() > kMaxBytes) return Invalid(path, ": has more than ", kMaxBytes, " bytes");
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

class ConfigFile {
 public:
  ConfigFile(const std::string& path, const Schema& schema) : path_(path), schema_(schema) {}

  absl::Status Apply(const std::string& text) {
    try {
      const std::vector<YAML::Node> documents = YAML::LoadAll(text);
      if (documents.size() > 1) return Invalid(path_, ": holds ", documents.size(), " YAML documents, expected one");
      if (documents.empty() || documents.front().IsNull()) return absl::OkStatus();
      return ApplyMap(documents.front(), "");
    } catch (const YAML::Exception& error) {
      return Invalid(At(error.mark), ": ", error.msg);
    }
  }

 private:
  std::string At(const YAML::Mark& mark) const { return mark.is_null() ? path_ : Concat(path_, ":", mark.line + 1); }

  // Applies a map whose keys have `prefix`: "" or "group.". The depth of the recursion is bounded by the groups in the
  // schema's names, whatever the file holds.
  absl::Status ApplyMap(const YAML::Node& map, const std::string& prefix) {
    if (!map.IsMap()) return Invalid(At(map.Mark()), ": expected \"key: value\" lines");
    for (const auto& entry : map) {
      const std::string where = At(entry.first.Mark());
      if (!entry.first.IsScalar()) return Invalid(where, ": expected a key that is a plain word");
      BATON_RETURN_IF_ERROR(ApplyEntry(prefix + entry.first.Scalar(), entry.second, where));
    }
    return absl::OkStatus();
  }

  absl::Status ApplyEntry(const std::string& name, const YAML::Node& value, const std::string& where) {
    if (!seen_.insert(name).second) return Invalid(where, ": ", name, " is given twice");
    const auto option = std::find_if(schema_.begin(), schema_.end(), [&](const Option& o) { return o.name == name; });
    if (option != schema_.end()) return ApplyOption(*option, value, Concat(where, ": ", name));
    const std::string group = name + ".";
    if (std::any_of(schema_.begin(), schema_.end(), [&](const Option& o) { return o.name.starts_with(group); })) {
      return ApplyMap(value, group);
    }
    return Invalid(where, ": unknown key ", name, DidYouMean(name, Names(schema_), ""));
  }

  static absl::Status ApplyOption(const Option& option, const YAML::Node& value, const std::string& where) {
    if (option.shape != Shape::kList) {
      if (!value.IsScalar()) return Invalid(where, ": expected one value");
      return Set(option, {value.Scalar()}, where);
    }
    if (!value.IsSequence()) return Invalid(where, ": expected a list, such as [a, b]");
    std::vector<std::string> texts;
    for (const YAML::Node& element : value) {
      if (!element.IsScalar()) return Invalid(where, ": expected a list of plain values");
      texts.push_back(element.Scalar());
    }
    return Set(option, texts, where);
  }

  const std::string& path_;
  const Schema& schema_;
  std::set<std::string> seen_;
};

}  // namespace

absl::Status ApplyConfigFile(const std::string& path, const Schema& schema) {
  BATON_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ConfigFile(path, schema).Apply(text);
}

}  // namespace baton::option_schema
