// SPDX-License-Identifier: Apache-2.0
// Parses untrusted JSON within limits and reads objects field by field. Errors name the place.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton {

// INVALID_ARGUMENT names `origin` and the place of the error: no JSON, more than 64 levels, or a key that an object
// repeats. Never throws. Thread-safe.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, std::string_view origin);

// Returns the JSON text of `value`, at most about 60 bytes, for errors.
std::string ShortJson(const nlohmann::json& value);

// Reads the fields of one object. An absent or null field leaves `value` unchanged, unless it is Required.
//
// The first error is kept (INVALID_ARGUMENT: origin, field, expected, actual) and later calls do nothing. A caller
// reads all fields and checks status() once. Not thread-safe. `object` must outlive the reader.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, std::string_view origin);

  JsonFields& Required(std::string_view name);
  JsonFields& Int(std::string_view name, int64_t min, int64_t max, int& value);
  JsonFields& Number(std::string_view name, double min, double max, double& value);
  JsonFields& Bool(std::string_view name, bool& value);
  JsonFields& String(std::string_view name, std::string& value);

  // Returns null if the field is absent or null.
  const nlohmann::json* Find(std::string_view name) const;
  // Records the error "<origin>: <name>: expected <expected>, got <value>" unless an error was recorded before.
  void Expected(std::string_view name, std::string_view expected);
  const absl::Status& status() const { return status_; }

 private:
  // Like Find, but a field that `accepts` refuses is an error and gives null.
  template <typename Accepts>
  const nlohmann::json* FindIf(std::string_view name, std::string_view expected, Accepts accepts);

  const nlohmann::json& object_;
  const std::string origin_;
  absl::Status status_;
};

}  // namespace baton
