// SPDX-License-Identifier: Apache-2.0
#include "common/json.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <vector>

#include "common/strings.h"

namespace baton {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 64;

// Callback of the parser that throws std::invalid_argument for deep nesting and for a repeated key of an object.
class Limits {
 public:
  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    const bool is_object = event == Json::parse_event_t::object_start;
    if ((is_object || event == Json::parse_event_t::array_start) && depth >= kMaxDepth) {
      throw std::invalid_argument(Concat("JSON nested deeper than ", kMaxDepth, " levels"));
    }
    if (is_object) {
      open_.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      open_.pop_back();
    } else if (event == Json::parse_event_t::key && !open_.back().insert(parsed).second) {
      throw std::invalid_argument(Concat("key ", parsed.dump(), " occurs twice"));
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> open_;  // the keys of each open object
};

}  // namespace

absl::StatusOr<Json> ParseJson(std::string_view text, std::string_view origin) {
  Limits limits;
  try {
    return Json::parse(text, std::ref(limits));
  } catch (const Json::parse_error& error) {
    return absl::InvalidArgumentError(Concat(origin, ": not valid JSON at byte ", error.byte));
  } catch (const std::invalid_argument& error) {
    return absl::InvalidArgumentError(Concat(origin, ": ", error.what()));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(Concat(origin, ": not valid JSON: ", error.what()));
  }
}

std::string ShortJson(const Json& value) {
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  constexpr size_t kLongest = 60;
  if (text.size() > kLongest) text = Concat(text.substr(0, kLongest), "...");
  return text;
}

JsonFields::JsonFields(const Json& object, std::string_view origin) : object_(object), origin_(origin) {
  if (!object.is_object()) {
    status_ = absl::InvalidArgumentError(Concat(origin, ": expected a JSON object, got ", ShortJson(object)));
  }
}

const Json* JsonFields::Find(std::string_view name) const {
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void JsonFields::Expected(std::string_view name, std::string_view expected) {
  if (!status_.ok()) return;
  const Json* found = Find(name);
  const std::string actual = found == nullptr ? "nothing" : ShortJson(*found);
  status_ = absl::InvalidArgumentError(Concat(origin_, ": ", name, ": expected ", expected, ", got ", actual));
}

JsonFields& JsonFields::Required(std::string_view name) {
  if (Find(name) == nullptr) Expected(name, "a value");
  return *this;
}

template <typename Accepts>
const Json* JsonFields::FindIf(std::string_view name, std::string_view expected, Accepts accepts) {
  const Json* json = Find(name);
  if (json == nullptr || accepts(*json)) return json;
  Expected(name, expected);
  return nullptr;
}

JsonFields& JsonFields::Int(std::string_view name, int64_t min, int64_t max, int& value) {
  const auto in_range = [&](const Json& json) {
    // An unsigned number above INT64_MAX would wrap when read as signed.
    const bool fits = json.is_number_integer() && (!json.is_number_unsigned() || json.get<uint64_t>() <= INT64_MAX);
    return fits && json.get<int64_t>() >= min && json.get<int64_t>() <= max;
  };
  const Json* json = FindIf(name, Concat("an integer from ", min, " to ", max), in_range);
  if (json != nullptr) value = json->get<int>();
  return *this;
}

JsonFields& JsonFields::Number(std::string_view name, double min, double max, double& value) {
  const auto in_range = [&](const Json& json) {
    return json.is_number() && json.get<double>() >= min && json.get<double>() <= max;
  };
  const Json* json = FindIf(name, Concat("a number from ", min, " to ", max), in_range);
  if (json != nullptr) value = json->get<double>();
  return *this;
}

JsonFields& JsonFields::Bool(std::string_view name, bool& value) {
  const Json* json = FindIf(name, "true or false", [](const Json& json) { return json.is_boolean(); });
  if (json != nullptr) value = json->get<bool>();
  return *this;
}

JsonFields& JsonFields::String(std::string_view name, std::string& value) {
  const Json* json = FindIf(name, "a string", [](const Json& json) { return json.is_string(); });
  if (json != nullptr) value = json->get<std::string>();
  return *this;
}

}  // namespace baton
