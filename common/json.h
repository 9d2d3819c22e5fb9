// JSON from outside: parsed within limits, read field by field, refused in words that name the place.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton {

// INVALID_ARGUMENT, with `origin` and the byte, for what is not JSON, nests deeper than 64 levels or names a key twice
// in one object. Never throws.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, std::string_view origin);

// Reads the fields of one object. A field that is absent or null leaves `value` as it is, unless it was Required. The
// first error sticks (INVALID_ARGUMENT: origin, field, what was expected, what is there) and later calls do nothing, so
// that a caller lists its fields and checks status() once. `object` must outlive the reader.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, std::string_view origin);

  JsonFields& Required(std::string_view name);
  JsonFields& Int(std::string_view name, int64_t min, int64_t max, int& value);
  JsonFields& Number(std::string_view name, double min, double max, double& value);
  JsonFields& Bool(std::string_view name, bool& value);
  JsonFields& String(std::string_view name, std::string& value);

  // Null when absent or null.
  const nlohmann::json* Find(std::string_view name) const;
  // Records the error "<origin>: <name>: expected <expected>, got <value>", unless there is one already.
  void Expected(std::string_view name, std::string_view expected);
  const absl::Status& status() const { return status_; }

 private:
  const nlohmann::json& object_;
  const std::string origin_;
  absl::Status status_;
};

}  // namespace baton
