// Reads a GGUF file's metadata field by field and refuses in words that name the key.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "engine/formats/gguf.h"

namespace baton {

// A field that is absent leaves `value` as it is, unless it was Required. The first error sticks (INVALID_ARGUMENT:
// origin, key, what was expected) and later calls do nothing, so that a caller lists its fields and checks status()
// once. `metadata` must outlive the reader, and its file what is read as a view.
class GgufFields {
 public:
  GgufFields(const GgufMetadata& metadata, std::string_view origin) : metadata_(metadata), origin_(origin) {}

  bool Has(std::string_view key) const { return metadata_.find(key) != metadata_.end(); }
  GgufFields& Required(std::string_view key);
  GgufFields& Int(std::string_view key, int64_t min, int64_t max, int64_t& value);  // of any integer type
  GgufFields& Number(std::string_view key, double min, double max, double& value);  // of any number type
  GgufFields& Bool(std::string_view key, bool& value);
  GgufFields& String(std::string_view key, std::string_view& value);
  GgufFields& Strings(std::string_view key, std::vector<std::string_view>& values);
  GgufFields& Ints(std::string_view key, std::vector<int64_t>& values);
  GgufFields& Floats(std::string_view key, std::vector<float>& values);  // of float32, all finite

  // Records the error "<origin>: <key>: expected <expected>", unless there is one already.
  void Expected(std::string_view key, std::string_view expected);
  const absl::Status& status() const { return status_; }

 private:
  const GgufValue* Find(std::string_view key) const;

  const GgufMetadata& metadata_;
  const std::string origin_;
  absl::Status status_;
};

}  // namespace baton
