// SPDX-License-Identifier: Apache-2.0
#include "text/chat/template_json.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {
namespace {

constexpr size_t kMaxDepth = 64;
// Bounds memory: a value of one byte of JSON takes 40 bytes here and more in a template.
constexpr size_t kMaxValues = 200'000;
constexpr size_t kMaxKeys = 10'000;  // per object

// Builds a TemplateValue from the events of nlohmann's SAX parser. Returning false stops the parser.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(std::string_view origin) : origin_(origin) {}

  bool null() override { return Add(); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Refuse(Concat("expected integers from -2^63 to 2^63 - 1, got ", value));
    }
    return Add(static_cast<int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    // The parser reports an integer beyond 64 bits as a float.
    if (text.find_first_of(".eE") == string_t::npos) {
      return Refuse(Concat("expected integers from -2^63 to 2^63 - 1, got ", text));
    }
    return Add(value);
  }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return Refuse("expected JSON, got a binary value"); }

  bool start_array(size_t /*size*/) override { return Open(false); }
  bool end_array() override { return Add(Take().list); }
  bool start_object(size_t /*size*/) override { return Open(true); }
  bool end_object() override { return Add(Take().dict); }
  bool key(string_t& name) override {
    if (!open_.back().keys.insert(name).second) return Refuse(Concat("expected unique keys, got \"", name, "\" twice"));
    if (open_.back().keys.size() > kMaxKeys) return Refuse(Concat("expected at most ", kMaxKeys, " keys in an object"));
    open_.back().key = std::move(name);
    return true;
  }

  bool parse_error(size_t byte, const std::string& /*token*/, const nlohmann::json::exception& /*error*/) override {
    return Refuse(Concat("not valid JSON at byte ", byte));
  }

  absl::StatusOr<TemplateValue> Result() && {
    if (!status_.ok()) return status_;
    return std::move(root_);
  }

 private:
  struct Container {
    bool is_object;
    TemplateValue::List list;
    TemplateValue::Dict dict;
    std::set<std::string> keys;
    std::string key;  // of the next value
  };

  bool Refuse(std::string_view why) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(Concat(origin_, ": ", why));
    return false;
  }

  bool Open(bool is_object) {
    if (open_.size() == kMaxDepth) return Refuse(Concat("JSON nested deeper than ", kMaxDepth, " levels"));
    open_.push_back({.is_object = is_object, .list = {}, .dict = {}, .keys = {}, .key = {}});
    return true;
  }

  Container Take() {
    Container container = std::move(open_.back());
    open_.pop_back();
    return container;
  }

  // Adds a value to the innermost open container.
  template <typename... Data>
  bool Add(Data&&... data) {
    if (++values_ > kMaxValues) return Refuse(Concat("expected at most ", kMaxValues, " values"));
    if (open_.empty()) {
      root_ = TemplateValue(std::forward<Data>(data)...);
    } else if (open_.back().is_object) {
      open_.back().dict.emplace_back(std::move(open_.back().key), TemplateValue(std::forward<Data>(data)...));
    } else {
      open_.back().list.emplace_back(std::forward<Data>(data)...);
    }
    return true;
  }

  const std::string origin_;
  std::vector<Container> open_;
  TemplateValue root_;
  size_t values_ = 0;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<TemplateValue> TemplateValueFromJson(std::string_view json, std::string_view origin) {
  Builder builder(origin);
  nlohmann::json::sax_parse(json, &builder);
  return std::move(builder).Result();
}

absl::StatusOr<TemplateValue::Dict> TemplateDictFromJson(std::string_view json, std::string_view origin) {
  BATON_ASSIGN_OR_RETURN(TemplateValue value, TemplateValueFromJson(json, origin));
  TemplateValue::Data data = std::move(value).data();
  auto* dict = std::get_if<TemplateValue::Dict>(&data);
  if (dict == nullptr) return absl::InvalidArgumentError(Concat(origin, ": expected a JSON object"));
  return std::move(*dict);
}

}  // namespace baton
