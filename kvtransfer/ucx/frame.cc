// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/ucx/frame.h"

#include <bit>
#include <cstring>

namespace baton {

static_assert(std::endian::native == std::endian::little,
              "frames are copied as they lie in memory: expected little-endian");

std::optional<FrameHeader> ParseHeader(const void* bytes, size_t size) {
  if (size != sizeof(FrameHeader)) return std::nullopt;
  FrameHeader header;
  std::memcpy(&header, bytes, sizeof(header));
  if (header.type < FrameType::kIdentity || header.type > FrameType::kUnmapped) return std::nullopt;
  return header;
}

bool IsSameProcess(const Identity& a, const Identity& b) {
  return a.boot_id == b.boot_id && a.pid_namespace == b.pid_namespace && a.pid == b.pid && a.start_time == b.start_time;
}

namespace {

template <typename Struct>
std::string_view BytesOf(const Struct& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

template <typename Struct>
std::optional<Struct> StructOf(std::string_view payload) {
  if (payload.size() != sizeof(Struct)) return std::nullopt;
  Struct value;
  payload.copy(reinterpret_cast<char*>(&value), sizeof(value));
  return value;
}

}  // namespace

std::string_view AsPayload(const Identity& identity) { return BytesOf(identity); }
std::optional<Identity> ParseIdentity(std::string_view payload) { return StructOf<Identity>(payload); }
std::string_view AsPayload(const RegionOffer& offer) { return BytesOf(offer); }
std::optional<RegionOffer> ParseOffer(std::string_view payload) { return StructOf<RegionOffer>(payload); }

}  // namespace baton
