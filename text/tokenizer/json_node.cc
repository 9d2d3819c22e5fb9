// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/json_node.h"

#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {
namespace {

std::string Describe(const nlohmann::json& value) {
  if (value.is_structured()) return value.is_array() ? "an array" : "an object";
  return ShortJson(value);
}

}  // namespace

JsonNode JsonNode::OfFile(const nlohmann::json& document, std::string file_name) {
  JsonNode node(document, std::move(file_name));
  node.is_file_ = true;
  return node;
}

std::optional<JsonNode> JsonNode::Find(std::string_view key) const {
  if (!value_->is_object()) return std::nullopt;
  const auto it = value_->find(key);
  if (it == value_->end() || it->is_null()) return std::nullopt;
  return JsonNode(*it, Concat(path_, is_file_ ? ": " : ".", key));
}

absl::StatusOr<JsonNode> JsonNode::Get(std::string_view key) const {
  if (!value_->is_object()) return Expected("an object");
  std::optional<JsonNode> field = Find(key);
  if (!field) {
    return absl::InvalidArgumentError(Concat(path_, is_file_ ? ": " : ".", key, ": expected a value, got none"));
  }
  return *std::move(field);
}

absl::StatusOr<std::vector<JsonNode>> JsonNode::Items() const {
  if (!value_->is_array()) return Expected("an array");
  std::vector<JsonNode> items;
  items.reserve(value_->size());
  for (size_t i = 0; i < value_->size(); ++i) items.emplace_back((*value_)[i], Concat(path_, "[", i, "]"));
  return items;
}

absl::StatusOr<std::string_view> JsonNode::String() const {
  if (!value_->is_string()) return Expected("a string");
  return value_->get_ref<const std::string&>();
}

absl::StatusOr<int64_t> JsonNode::Integer(int64_t min, int64_t max) const {
  // get<int64_t>() would wrap a larger number.
  if (!value_->is_number_integer() || (value_->is_number_unsigned() && value_->get<uint64_t>() > INT64_MAX)) {
    return Expected("an integer");
  }
  const auto number = value_->get<int64_t>();
  if (number < min || number > max) return Expected(Concat("an integer from ", min, " to ", max));
  return number;
}

absl::StatusOr<std::vector<JsonNode>> JsonNode::GetItems(std::string_view key) const {
  BATON_ASSIGN_OR_RETURN(const JsonNode field, Get(key));
  return field.Items();
}

absl::StatusOr<std::string_view> JsonNode::GetString(std::string_view key) const {
  BATON_ASSIGN_OR_RETURN(const JsonNode field, Get(key));
  return field.String();
}

absl::StatusOr<int64_t> JsonNode::GetInteger(std::string_view key, int64_t min, int64_t max) const {
  BATON_ASSIGN_OR_RETURN(const JsonNode field, Get(key));
  return field.Integer(min, max);
}

absl::StatusOr<bool> JsonNode::GetBool(std::string_view key, bool if_absent) const {
  const std::optional<JsonNode> field = Find(key);
  if (!field) return if_absent;
  if (!field->value_->is_boolean()) return field->Expected("true or false");
  return field->value_->get<bool>();
}

absl::Status JsonNode::Expected(std::string_view what) const {
  return absl::InvalidArgumentError(Concat(path_, ": expected ", what, ", got ", Describe(*value_)));
}

absl::Status JsonNode::Unsupported(std::string_view what) const {
  return absl::UnimplementedError(Concat(path_, ": ", what, " is not supported"));
}

}  // namespace baton
