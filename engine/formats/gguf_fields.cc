// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/gguf_fields.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

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

// Each function below takes a value of `type` from the front of `bytes`. Returns nullopt when `type` is another type.

std::optional<bool> TakeBool(GgufType type, std::span<const std::byte>& bytes) {
  return type == GgufType::kBool ? std::optional(Take<uint8_t>(bytes) != 0) : std::nullopt;
}

std::optional<std::string_view> TakeString(GgufType type, std::span<const std::byte>& bytes) {
  if (type != GgufType::kString) return std::nullopt;
  const auto length = Take<uint64_t>(bytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), length);
  bytes = bytes.subspan(length);
  return text;
}

// Returns nullopt also when the value exceeds INT64_MAX.
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

std::optional<float> TakeFiniteFloat(GgufType type, std::span<const std::byte>& bytes) {
  if (type != GgufType::kFloat32) return std::nullopt;
  const auto number = Take<float>(bytes);
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

// Takes an array, whose elements `TakeElement` takes.
template <auto TakeElement>
auto TakeArray(GgufType type, std::span<const std::byte>& bytes) {
  using Elements = std::vector<typename decltype(TakeElement(type, bytes))::value_type>;
  std::optional<Elements> elements;
  if (type != GgufType::kArray) return elements;
  const auto element_type = static_cast<GgufType>(Take<uint32_t>(bytes));
  const auto count = Take<uint64_t>(bytes);
  elements.emplace().reserve(count);
  while (elements->size() < count) {
    const auto element = TakeElement(element_type, bytes);
    if (!element) return std::optional<Elements>();
    elements->push_back(*element);
  }
  return elements;
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

template <typename T, typename Take>
GgufFields& GgufFields::Read(std::string_view key, std::string_view expected, Take take, T& value) {
  const GgufValue* found = Find(key);
  if (found == nullptr) return *this;
  std::span<const std::byte> bytes = found->bytes;
  if (std::optional<T> taken = take(found->type, bytes)) {
    value = *std::move(taken);
  } else {
    Expected(key, expected);
  }
  return *this;
}

template <typename T, typename Take>
GgufFields& GgufFields::ReadInRange(std::string_view key, std::string_view kind, T min, T max, Take take, T& value) {
  const GgufValue* found = Find(key);
  if (found == nullptr) return *this;
  std::span<const std::byte> bytes = found->bytes;
  const std::optional<T> number = take(found->type, bytes);
  if (number && *number >= min && *number <= max) {
    value = *number;
  } else {
    Expected(key, Concat(kind, " from ", min, " to ", max, number ? Concat(", got ", *number) : ""));
  }
  return *this;
}

GgufFields& GgufFields::Int(std::string_view key, int64_t min, int64_t max, int64_t& value) {
  return ReadInRange(key, "an integer", min, max, TakeInt, value);
}

GgufFields& GgufFields::Number(std::string_view key, double min, double max, double& value) {
  return ReadInRange(key, "a number", min, max, TakeNumber, value);
}

GgufFields& GgufFields::Bool(std::string_view key, bool& value) { return Read(key, "a bool", TakeBool, value); }

GgufFields& GgufFields::String(std::string_view key, std::string_view& value) {
  return Read(key, "a string", TakeString, value);
}

GgufFields& GgufFields::Strings(std::string_view key, std::vector<std::string_view>& values) {
  return Read(key, "an array of strings", TakeArray<TakeString>, values);
}

GgufFields& GgufFields::Ints(std::string_view key, std::vector<int64_t>& values) {
  return Read(key, "an array of integers", TakeArray<TakeInt>, values);
}

GgufFields& GgufFields::Floats(std::string_view key, std::vector<float>& values) {
  return Read(key, "an array of finite float32 numbers", TakeArray<TakeFiniteFloat>, values);
}

}  // namespace baton
