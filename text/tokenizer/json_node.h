// Reads the JSON files of a model folder: each value knows where it stands, so that an error names the field.
//
// Includes the JSON library: for the .cc files that load something.
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

// A view of a value in a document, which must outlive it.
class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  const nlohmann::json& value() const { return *value_; }
  const std::string& path() const { return path_; }

  // A field that is null counts as absent: the files write one as the other.
  std::optional<JsonNode> Find(std::string_view key) const;
  absl::StatusOr<JsonNode> Get(std::string_view key) const;
  absl::StatusOr<std::vector<JsonNode>> Items() const;  // of an array

  absl::StatusOr<std::string_view> String() const;  // lives as long as the document
  absl::StatusOr<int64_t> Integer() const;

  // Fields of this object.
  absl::StatusOr<std::string_view> GetString(std::string_view key) const;
  absl::StatusOr<int64_t> GetInteger(std::string_view key) const;
  absl::StatusOr<bool> GetBool(std::string_view key, bool if_absent) const;

  // INVALID_ARGUMENT: this value is not what was expected.
  absl::Status Expected(std::string_view what) const;
  // UNIMPLEMENTED: this value asks for `what`, which is not supported.
  absl::Status Unsupported(std::string_view what) const;

 private:
  const nlohmann::json* value_;
  std::string path_;  // "tokenizer.json: model.merges[3]"
};

}  // namespace baton
