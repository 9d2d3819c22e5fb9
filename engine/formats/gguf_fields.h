// SPDX-License-Identifier: Apache-2.0
// Reads fields of a GGUF file's metadata, with errors that name the key. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "engine/formats/gguf.h"

namespace baton {

// An absent field leaves `value` unchanged and is an error only after Required. The first error (INVALID_ARGUMENT) is
// kept and turns later calls into no-ops, so a caller reads all fields and checks status() once.
//
// `metadata` must outlive the reader. Strings are views into the mapped file.
class GgufFields {
 public:
  GgufFields(const GgufMetadata& metadata, std::string_view origin) : metadata_(metadata), origin_(origin) {}

  bool Has(std::string_view key) const { return metadata_.find(key) != metadata_.end(); }
  GgufFields& Required(std::string_view key);
  GgufFields& Int(std::string_view key, int64_t min, int64_t max, int64_t& value);  // accepts all integer types
  GgufFields& Number(std::string_view key, double min, double max, double& value);  // accepts integers and floats
  GgufFields& Bool(std::string_view key, bool& value);
  GgufFields& String(std::string_view key, std::string_view& value);
  GgufFields& Strings(std::string_view key, std::vector<std::string_view>& values);
  GgufFields& Ints(std::string_view key, std::vector<int64_t>& values);
  GgufFields& Floats(std::string_view key, std::vector<float>& values);  // accepts finite float32 only

  // Sets status() to "<origin>: <key>: expected <expected>", unless status() is already an error.
  void Expected(std::string_view key, std::string_view expected);
  const absl::Status& status() const { return status_; }

 private:
  const GgufValue* Find(std::string_view key) const;
  // Set `value` to what `take` takes from the field; nullopt is an error.
  template <typename T, typename Take>
  GgufFields& Read(std::string_view key, std::string_view expected, Take take, T& value);
  template <typename T, typename Take>
  GgufFields& ReadInRange(std::string_view key, std::string_view kind, T min, T max, Take take, T& value);

  const GgufMetadata& metadata_;
  const std::string origin_;
  absl::Status status_;
};

}  // namespace baton
