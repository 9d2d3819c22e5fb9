// SPDX-License-Identifier: Apache-2.0
#include "common/json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "common/strings.h"

namespace baton {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 64;

// Returns the byte where nesting exceeds kMaxDepth, or npos. Only counts brackets outside of strings; the parser finds
// all other errors.
size_t FindTooDeep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) return i;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return std::string_view::npos;
}

// Callback of the parser that remembers the first repeated key of an object.
class DuplicateKeys {
 public:
  bool operator()(int /*depth*/, Json::parse_event_t event, const Json& parsed) {
    if (event == Json::parse_event_t::object_start) {
      open_.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      open_.pop_back();
    } else if (event == Json::parse_event_t::key && !open_.back().insert(parsed).second && found_.empty()) {
      found_ = parsed.dump();
    }
    return true;
  }
  const std::string& found() const { return found_; }

 private:
  std::vector<std::set<std::string>> open_;
  std::string found_;
};

std::string Shortened(const Json* value) {
  if (value == nullptr) return "nothing";
  std::string text = value->dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  constexpr size_t kLongest = 60;
  if (text.size() > kLongest) text = Concat(text.substr(0, kLongest), "...");
  return text;
}

}  // namespace

absl::StatusOr<Json> ParseJson(std::string_view text, std::string_view origin) {
  if (const size_t at = FindTooDeep(text); at != std::string_view::npos) {
    return absl::InvalidArgumentError(Concat(origin, ": JSON nested deeper than ", kMaxDepth, " levels at byte ", at));
  }
  DuplicateKeys duplicates;
  try {
    Json json = Json::parse(text, std::ref(duplicates));
    if (!duplicates.found().empty()) {
      return absl::InvalidArgumentError(Concat(origin, ": key ", duplicates.found(), " occurs twice"));
    }
    return json;
  } catch (const Json::parse_error& error) {
    return absl::InvalidArgumentError(Concat(origin, ": not valid JSON at byte ", error.byte));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(Concat(origin, ": not valid JSON: ", error.what()));
  }
}

JsonFields::JsonFields(const Json& object, std::string_view origin) : object_(object), origin_(origin) {
  if (!object.is_object()) {
    status_ = absl::InvalidArgumentError(Concat(origin, ": expected a JSON object, got ", Shortened(&object)));
  }
}

const Json* JsonFields::Find(std::string_view name) const {
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void JsonFields::Expected(std::string_view name, std::string_view expected) {
  if (!status_.ok()) return;
  status_ =
      absl::InvalidArgumentError(Concat(origin_, ": ", name, ": expected ", expected, ", got ", Shortened(Find(name))));
}

JsonFields& JsonFields::Required(std::string_view name) {
  if (Find(name) == nullptr) Expected(name, "a value");
  return *this;
}

JsonFields& JsonFields::Int(std::string_view name, int64_t min, int64_t max, int& value) {
  const Json* json = Find(name);
  if (json == nullptr) return *this;
  // An unsigned number above INT64_MAX would wrap when read as signed.
  const bool fits = json->is_number_integer() && (!json->is_number_unsigned() || json->get<uint64_t>() <= INT64_MAX);
  if (const int64_t number = fits ? json->get<int64_t>() : 0; fits && number >= min && number <= max) {
    value = static_cast<int>(number);
  } else {
    Expected(name, Concat("an integer from ", min, " to ", max));
  }
  return *this;
}

JsonFields& JsonFields::Number(std::string_view name, double min, double max, double& value) {
  const Json* json = Find(name);
  if (json == nullptr) return *this;
  if (json->is_number() && json->get<double>() >= min && json->get<double>() <= max) {
    value = json->get<double>();
  } else {
    Expected(name, Concat("a number from ", min, " to ", max));
  }
  return *this;
}

JsonFields& JsonFields::Bool(std::string_view name, bool& value) {
  const Json* json = Find(name);
  if (json == nullptr) return *this;
  if (json->is_boolean()) {
    value = json->get<bool>();
  } else {
    Expected(name, "true or false");
  }
  return *this;
}

JsonFields& JsonFields::String(std::string_view name, std::string& value) {
  const Json* json = Find(name);
  if (json == nullptr) return *this;
  if (json->is_string()) {
    value = json->get<std::string>();
  } else {
    Expected(name, "a string");
  }
  return *this;
}

}  // namespace baton
