// SPDX-License-Identifier: Apache-2.0
// Reads tokenizer.json and tokenizer_config.json. Each JsonNode knows its path, so that errors name the field.
//
// Include this header only from .cc files that load JSON: it includes the JSON library.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/json.h"  // ParseJson

namespace baton {

// A view of a value in a JSON document. The document must outlive the JsonNode.
class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, std::string path) : value_(&value), path_(std::move(path)) {}
  // The root of a file, whose fields have paths like "tokenizer.json: model".
  static JsonNode OfFile(const nlohmann::json& document, std::string file_name);

  const nlohmann::json& value() const { return *value_; }
  const std::string& path() const { return path_; }

  // A null field counts as absent, because these files use both.
  std::optional<JsonNode> Find(std::string_view key) const;
  absl::StatusOr<JsonNode> Get(std::string_view key) const;
  absl::StatusOr<std::vector<JsonNode>> Items() const;  // elements of an array

  absl::StatusOr<std::string_view> String() const;  // points into the document
  absl::StatusOr<int64_t> Integer(int64_t min = INT64_MIN, int64_t max = INT64_MAX) const;

  // Read a field of this object.
  absl::StatusOr<std::vector<JsonNode>> GetItems(std::string_view key) const;
  absl::StatusOr<std::string_view> GetString(std::string_view key) const;
  absl::StatusOr<int64_t> GetInteger(std::string_view key, int64_t min = INT64_MIN, int64_t max = INT64_MAX) const;
  absl::StatusOr<bool> GetBool(std::string_view key, bool if_absent) const;

  // INVALID_ARGUMENT "<path>: expected <what>, got <this value>".
  absl::Status Expected(std::string_view what) const;
  // UNIMPLEMENTED "<path>: <what> is not supported".
  absl::Status Unsupported(std::string_view what) const;

 private:
  const nlohmann::json* value_;
  std::string path_;  // "tokenizer.json: model.merges[3]"
  bool is_file_ = false;
};

}  // namespace baton
