// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/gguf_fields.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "common/strings.h"

namespace baton {
namespace {

template <typename T>
T Take(std::span<const std::byte>& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes = bytes.subspan(sizeof(T));
  return value;
}

std::string_view TakeString(std::span<const std::byte>& bytes) {
  const auto length = Take<uint64_t>(bytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), length);
  bytes = bytes.subspan(length);
  return text;
}

// Returns nullopt when the type is not an integer type or the value exceeds INT64_MAX.
std::optional<int64_t> TakeInt(GgufType type, std::span<const std::byte>& bytes) {
  switch (type) {
    case GgufType::kUint8: return Take<uint8_t>(bytes);
    case GgufType::kInt8: return Take<int8_t>(bytes);
    case GgufType::kUint16: return Take<uint16_t>(bytes);
    case GgufType::kInt16: return Take<int16_t>(bytes);
    case GgufType::kUint32: return Take<uint32_t>(bytes);
    case GgufType::kInt32: return Take<int32_t>(bytes);
    case GgufType::kUint64: {
      const auto number = Take<uint64_t>(bytes);
      return number <= INT64_MAX ? std::optional(static_cast<int64_t>(number)) : std::nullopt;
    }
    case GgufType::kInt64: return Take<int64_t>(bytes);
    default: return std::nullopt;
  }
}

std::optional<double> TakeNumber(GgufType type, std::span<const std::byte>& bytes) {
  if (type == GgufType::kFloat32) return Take<float>(bytes);
  if (type == GgufType::kFloat64) return Take<double>(bytes);
  const std::optional<int64_t> number = TakeInt(type, bytes);
  return number ? std::optional(static_cast<double>(*number)) : std::nullopt;
}

struct Array {
  GgufType type;
  uint64_t count;
  std::span<const std::byte> elements;
};

Array ReadArray(std::span<const std::byte> bytes) {
  const auto type = static_cast<GgufType>(Take<uint32_t>(bytes));
  const auto count = Take<uint64_t>(bytes);
  return {type, count, bytes};
}

}  // namespace

const GgufValue* GgufFields::Find(std::string_view key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() || !status_.ok() ? nullptr : &found->second;
}

void GgufFields::Expected(std::string_view key, std::string_view expected) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(Concat(origin_, ": ", key, ": expected ", expected));
}

GgufFields& GgufFields::Required(std::string_view key) {
  if (!Has(key)) Expected(key, "a value");
  return *this;
}

GgufFields& GgufFields::Int(std::string_view key, int64_t min, int64_t max, int64_t& value) {
  const GgufValue* found = Find(key);
  if (found == nullptr) return *this;
  std::span<const std::byte> bytes = found->bytes;
  const std::optional<int64_t> number = TakeInt(found->type, bytes);
  if (number && *number >= min && *number <= max) {
    value = *number;
  } else {
    Expected(key, Concat("an integer from ", min, " to ", max, number ? Concat(", got ", *number) : ""));
  }
  return *this;
}

GgufFields& GgufFields::Number(std::string_view key, double min, double max, double& value) {
  const GgufValue* found = Find(key);
  if (found == nullptr) return *this;
  std::span<const std::byte> bytes = found->bytes;
  const std::optional<double> number = TakeNumber(found->type, bytes);
  if (number && *number >= min && *number <= max) {
    value = *number;
  } else {
    Expected(key, Concat("a number from ", min, " to ", max, number ? Concat(", got ", *number) : ""));
  }
  return *this;
}

GgufFields& GgufFields::Bool(std::string_view key, bool& value) {
  const GgufValue* found = Find(key);
  if (found == nullptr) return *this;
  if (found->type == GgufType::kBool) {
    value = found->bytes.front() != std::byte{0};
  } else {
    Expected(key, "a bool");
  }
  return *this;
}

GgufFields& GgufFields::String(std::string_view key, std::string_view& value) {
  const GgufValue* found = Find(key);
  if (found == nullptr) return *this;
  if (found->type == GgufType::kString) {
    std::span<const std::byte> bytes = found->bytes;
    value = TakeString(bytes);
  } else {
    Expected(key, "a string");
  }
  return *this;
}

GgufFields& GgufFields::Strings(std::string_view key, std::vector<std::string_view>& values) {
  const GgufValue* found = Find(key);
  if (found == nullptr) return *this;
  if (found->type == GgufType::kArray) {
    Array array = ReadArray(found->bytes);
    if (array.type == GgufType::kString) {
      values.clear();
      values.reserve(array.count);
      for (uint64_t i = 0; i < array.count; ++i) values.push_back(TakeString(array.elements));
      return *this;
    }
  }
  Expected(key, "an array of strings");
  return *this;
}

GgufFields& GgufFields::Ints(std::string_view key, std::vector<int64_t>& values) {
  const GgufValue* found = Find(key);
  if (found == nullptr) return *this;
  if (found->type == GgufType::kArray) {
    Array array = ReadArray(found->bytes);
    values.clear();
    while (values.size() < array.count) {
      const std::optional<int64_t> number = TakeInt(array.type, array.elements);
      if (!number) break;
      values.push_back(*number);
    }
    if (values.size() == array.count) return *this;
  }
  Expected(key, "an array of integers");
  return *this;
}

GgufFields& GgufFields::Floats(std::string_view key, std::vector<float>& values) {
  const GgufValue* found = Find(key);
  if (found == nullptr) return *this;
  if (found->type == GgufType::kArray) {
    const Array array = ReadArray(found->bytes);
    if (array.type == GgufType::kFloat32) {
      values.resize(array.count);
      std::memcpy(values.data(), array.elements.data(), array.count * sizeof(float));
      if (std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); })) return *this;
    }
  }
  Expected(key, "an array of finite float32 numbers");
  return *this;
}

}  // namespace baton
