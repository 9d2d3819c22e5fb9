// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <set>
#include <type_traits>

#include "absl/status/status.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/formats/ggml_types.h"

namespace baton {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors point into little-endian files");

constexpr std::string_view kMagic = "GGUF";
constexpr uint32_t kOldestVersion = 2;
constexpr uint32_t kNewestVersion = 3;
constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr uint32_t kDefaultAlignment = 32;
constexpr uint32_t kMaxAlignment = 1 << 20;

// Limits far above every real model.
constexpr uint64_t kMaxEntries = 1 << 16;  // for tensors and for metadata entries
constexpr uint64_t kMaxNameBytes = 1 << 10;
constexpr uint64_t kMaxStringBytes = uint64_t{16} << 20;
constexpr uint64_t kMaxArrayElements = uint64_t{1} << 24;
constexpr int kMaxArrayDepth = 4;
constexpr uint32_t kMaxDimensions = 4;

// Sizes of the smallest encoded entries, to bound the number of entries by the size of the file.
constexpr uint64_t kMinMetadataBytes = 8 + 4 + 1;    // empty key, type, value of one byte
constexpr uint64_t kMinTensorBytes = 8 + 4 + 4 + 8;  // empty name, rank 0, type, offset

// Returns 0 for strings and arrays, whose size varies.
uint64_t SizeOf(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kBool: return 1;
    case GgufType::kUint16:
    case GgufType::kInt16: return 2;
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kFloat32: return 4;
    case GgufType::kUint64:
    case GgufType::kInt64:
    case GgufType::kFloat64: return 8;
    case GgufType::kString:
    case GgufType::kArray: return 0;
  }
  return 0;
}

template <typename... Args>
absl::Status Expected(const Args&... args) {
  return absl::InvalidArgumentError(Concat("expected ", args...));
}

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Reads a file front to back. Errors do not name the field or key; callers add the name with Named.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> file) : file_(file) {}

  size_t position() const { return position_; }
  uint64_t left() const { return file_.size() - position_; }
  std::span<const std::byte> since(size_t position) const { return file_.subspan(position, position_ - position); }

  absl::StatusOr<std::span<const std::byte>> Bytes(uint64_t count) {
    if (count > left()) return Expected(count, " more bytes at byte ", position_, ", where the file has ", left());
    position_ += count;
    return file_.subspan(position_ - count, count);
  }

  template <typename T>
  absl::StatusOr<T> Number() {
    BATON_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, Bytes(sizeof(T)));
    T number;
    std::memcpy(&number, bytes.data(), sizeof(T));
    return number;
  }

  absl::StatusOr<std::string_view> String(uint64_t max_bytes) {
    BATON_ASSIGN_OR_RETURN(const auto length, Number<uint64_t>());
    if (length > max_bytes) return Expected("a string of at most ", max_bytes, " bytes, got ", length);
    BATON_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, Bytes(length));
    return AsText(bytes);
  }

  absl::StatusOr<GgufType> Type() {
    BATON_ASSIGN_OR_RETURN(const auto type, Number<uint32_t>());
    if (type > static_cast<uint32_t>(GgufType::kFloat64)) return Expected("a value of type 0 to 12, got type ", type);
    return static_cast<GgufType>(type);
  }

  // Checks a value and moves past its end.
  absl::Status Value(GgufType type, int array_depth = 0) {
    if (type == GgufType::kString) return String(kMaxStringBytes).status();
    if (type == GgufType::kArray) return Array(array_depth + 1);
    BATON_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, Bytes(SizeOf(type)));
    return type == GgufType::kBool ? CheckBools(bytes) : absl::OkStatus();
  }

 private:
  absl::Status Array(int depth) {
    if (depth > kMaxArrayDepth) return Expected("arrays nested at most ", kMaxArrayDepth, " deep");
    BATON_ASSIGN_OR_RETURN(const GgufType type, Type());
    BATON_ASSIGN_OR_RETURN(const auto count, Number<uint64_t>());
    if (count > kMaxArrayElements) {
      return Expected("an array of at most ", kMaxArrayElements, " elements, got ", count);
    }
    if (const uint64_t size = SizeOf(type); size != 0) {
      BATON_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, Bytes(count * size));
      return type == GgufType::kBool ? CheckBools(bytes) : absl::OkStatus();
    }
    for (uint64_t i = 0; i < count; ++i) BATON_RETURN_IF_ERROR(Value(type, depth));
    return absl::OkStatus();
  }

  static absl::Status CheckBools(std::span<const std::byte> bytes) {
    const bool valid = std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b <= std::byte{1}; });
    return valid ? absl::OkStatus() : Expected("a bool to be 0 or 1");
  }

  const std::span<const std::byte> file_;
  size_t position_ = 0;
};

template <typename T>
absl::StatusOr<T> Named(std::string_view what, absl::StatusOr<T> value) {
  if (value.ok()) return value;
  return absl::InvalidArgumentError(Concat(what, ": ", value.status().message()));
}

absl::Status Named(std::string_view what, const absl::Status& status) {
  return status.ok() ? status : absl::InvalidArgumentError(Concat(what, ": ", status.message()));
}

struct Counts {
  uint64_t tensors;
  uint64_t metadata;
};

absl::StatusOr<Counts> ReadStart(Cursor& cursor) {
  const absl::StatusOr<std::span<const std::byte>> magic = cursor.Bytes(kMagic.size());
  if (!magic.ok() || AsText(*magic) != kMagic) return Expected("a GGUF file, which starts with \"GGUF\"");
  BATON_ASSIGN_OR_RETURN(const auto version, Named("version", cursor.Number<uint32_t>()));
  if (version < kOldestVersion || version > kNewestVersion) {
    return Expected("version ", kOldestVersion, " or ", kNewestVersion, " of GGUF, little-endian, got ", version);
  }
  BATON_ASSIGN_OR_RETURN(const auto tensors, Named("number of tensors", cursor.Number<uint64_t>()));
  BATON_ASSIGN_OR_RETURN(const auto metadata, Named("number of metadata entries", cursor.Number<uint64_t>()));
  if (tensors > std::min(kMaxEntries, cursor.left() / kMinTensorBytes)) {
    return Expected("at most ", kMaxEntries, " tensors and as many as the file has room for, got ", tensors);
  }
  if (metadata > std::min(kMaxEntries, cursor.left() / kMinMetadataBytes)) {
    return Expected("at most ", kMaxEntries, " metadata entries and as many as the file has room for, got ", metadata);
  }
  return Counts{tensors, metadata};
}

absl::StatusOr<GgufMetadata> ReadMetadata(Cursor& cursor, uint64_t count) {
  GgufMetadata metadata;
  for (uint64_t i = 0; i < count; ++i) {
    BATON_ASSIGN_OR_RETURN(const std::string_view key,
                           Named(Concat("key of metadata entry ", i), cursor.String(kMaxNameBytes)));
    BATON_ASSIGN_OR_RETURN(const GgufType type, Named(key, cursor.Type()));
    const size_t begin = cursor.position();
    BATON_RETURN_IF_ERROR(Named(key, cursor.Value(type)));
    if (!metadata.try_emplace(std::string(key), GgufValue{type, cursor.since(begin)}).second) {
      return absl::InvalidArgumentError(Concat(key, ": expected one value, got several"));
    }
  }
  return metadata;
}

absl::StatusOr<uint64_t> ReadAlignment(const GgufMetadata& metadata) {
  const auto found = metadata.find(kAlignmentKey);
  if (found == metadata.end()) return kDefaultAlignment;
  uint32_t alignment = 0;
  if (found->second.type == GgufType::kUint32) std::memcpy(&alignment, found->second.bytes.data(), sizeof(alignment));
  if (!std::has_single_bit(alignment) || alignment > kMaxAlignment) {
    return absl::InvalidArgumentError(
        Concat(kAlignmentKey, ": expected a uint32 that is a power of two up to ", kMaxAlignment));
  }
  return alignment;
}

// Position of a tensor's data in the file.
struct Place {
  uint64_t offset = 0;            // from the end of the padded header
  std::optional<uint64_t> bytes;  // empty when the type is unknown
};

// Errors do not name the tensor.
absl::StatusOr<uint64_t> DataBytes(const GgmlType& type, const std::vector<int64_t>& shape) {
  if (const int64_t row = shape.empty() ? 1 : shape.back(); row % type.block_values != 0) {
    return Expected("a row of whole ", type.name, " blocks, ", type.block_values, " values each, got ", row);
  }
  uint64_t values = 1;
  for (const int64_t size : shape) {
    if (__builtin_mul_overflow(values, static_cast<uint64_t>(size), &values) || values > INT64_MAX) {
      return Expected("fewer than 2^63 values, got shape ", ShapeText(shape));
    }
  }
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(values / type.block_values, uint64_t{type.block_bytes}, &bytes)) {
    return Expected("fewer than 2^64 bytes, got shape ", ShapeText(shape));
  }
  return bytes;
}

// Reads the description that follows a tensor's name. Errors do not name the tensor.
absl::StatusOr<Place> ReadTensor(Cursor& cursor, uint64_t alignment, Tensor& tensor) {
  BATON_ASSIGN_OR_RETURN(const auto rank, cursor.Number<uint32_t>());
  if (rank > kMaxDimensions) return Expected("at most ", kMaxDimensions, " dimensions, got ", rank);
  for (uint32_t i = 0; i < rank; ++i) {
    BATON_ASSIGN_OR_RETURN(const auto size, cursor.Number<uint64_t>());
    if (size > static_cast<uint64_t>(INT64_MAX)) return Expected("sizes below 2^63, got ", size);
    tensor.shape.push_back(static_cast<int64_t>(size));
  }
  std::reverse(tensor.shape.begin(), tensor.shape.end());  // GGUF lists the innermost dimension first
  BATON_ASSIGN_OR_RETURN(const auto type_id, cursor.Number<uint32_t>());
  BATON_ASSIGN_OR_RETURN(const auto offset, cursor.Number<uint64_t>());
  if (offset % alignment != 0) return Expected("an offset that is a multiple of ", alignment, ", got ", offset);
  const GgmlType* type = FindGgmlType(type_id);
  if (type == nullptr) {
    tensor.type_name = Concat("type ", type_id);
    return Place{offset, std::nullopt};
  }
  tensor.type_name = type->name;
  tensor.type = type->type;
  BATON_ASSIGN_OR_RETURN(const uint64_t bytes, DataBytes(*type, tensor.shape));
  return Place{offset, bytes};
}

// Sets each tensor's data. `body` is the file after the padded header.
absl::Status PlaceTensors(std::span<const std::byte> body, const std::vector<Place>& places,
                          std::vector<Tensor>& tensors) {
  std::vector<size_t> order(tensors.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(places[a].offset, places[a].bytes) < std::pair(places[b].offset, places[b].bytes);
  });
  uint64_t end = 0;
  for (const size_t i : order) {
    const uint64_t offset = places[i].offset;
    const uint64_t bytes = places[i].bytes.value_or(0);
    if (offset > body.size() || bytes > body.size() - offset) {
      return absl::InvalidArgumentError(Concat("tensor ", tensors[i].name, ": expected its ", bytes,
                                               " bytes at offset ", offset, " within the ", body.size(),
                                               " bytes after the header"));
    }
    if (offset < end) {
      return absl::InvalidArgumentError(Concat("tensor ", tensors[i].name, ": expected its data at offset ", end,
                                               " or later, where the tensor before it ends, got ", offset));
    }
    end = offset + bytes;
    tensors[i].data = body.subspan(offset, bytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<GgufFile> Parse(std::span<const std::byte> bytes) {
  Cursor cursor(bytes);
  GgufFile file;
  BATON_ASSIGN_OR_RETURN(const Counts counts, ReadStart(cursor));
  BATON_ASSIGN_OR_RETURN(file.metadata, ReadMetadata(cursor, counts.metadata));
  BATON_ASSIGN_OR_RETURN(const uint64_t alignment, ReadAlignment(file.metadata));
  std::vector<Place> places;
  std::set<std::string_view> names;
  for (uint64_t i = 0; i < counts.tensors; ++i) {
    BATON_ASSIGN_OR_RETURN(const std::string_view name,
                           Named(Concat("name of tensor ", i), cursor.String(kMaxNameBytes)));
    if (!names.insert(name).second) {
      return absl::InvalidArgumentError(Concat("tensor ", name, ": expected one tensor, got several"));
    }
    Tensor& tensor = file.tensors.emplace_back();
    tensor.name = name;
    BATON_ASSIGN_OR_RETURN(const Place place, Named(Concat("tensor ", name), ReadTensor(cursor, alignment, tensor)));
    places.push_back(place);
  }
  // A file without tensor data may end before `padded`.
  const uint64_t padded = (cursor.position() + alignment - 1) / alignment * alignment;
  BATON_RETURN_IF_ERROR(PlaceTensors(bytes.subspan(std::min<uint64_t>(padded, bytes.size())), places, file.tensors));
  return file;
}

}  // namespace

absl::StatusOr<GgufFile> ParseGguf(std::span<const std::byte> file, std::string_view origin) {
  return Named(origin, Parse(file));
}

}  // namespace baton
