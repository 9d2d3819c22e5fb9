#include "kvtransfer/ucx/frame.h"

#include <bit>
#include <cstring>

namespace baton {

static_assert(std::endian::native == std::endian::little, "frames are copied as they lie in memory");

std::optional<FrameHeader> ParseHeader(const void* bytes, size_t size) {
  if (size != sizeof(FrameHeader)) return std::nullopt;
  FrameHeader header;
  std::memcpy(&header, bytes, sizeof(header));
  if (header.type < FrameType::kIdentity || header.type > FrameType::kLetGo) return std::nullopt;
  return header;
}

bool IsSameProcess(const Identity& a, const Identity& b) {
  return a.boot_id == b.boot_id && a.pid_namespace == b.pid_namespace && a.pid == b.pid && a.start_time == b.start_time;
}

std::string_view AsPayload(const Identity& identity) {
  return {reinterpret_cast<const char*>(&identity), sizeof(identity)};
}

std::optional<Identity> ParseIdentity(std::string_view payload) {
  if (payload.size() != sizeof(Identity)) return std::nullopt;
  Identity identity;
  std::memcpy(&identity, payload.data(), sizeof(identity));
  return identity;
}

std::string EncodeOffer(const RegionOffer& offer) {
  const auto key_bytes = static_cast<uint32_t>(offer.remote_key.size());
  std::string payload(reinterpret_cast<const char*>(&key_bytes), sizeof(key_bytes));
  return payload + offer.remote_key + offer.worker_address;
}

std::optional<RegionOffer> ParseOffer(std::string_view payload) {
  uint32_t key_bytes = 0;
  if (payload.size() < sizeof(key_bytes)) return std::nullopt;
  std::memcpy(&key_bytes, payload.data(), sizeof(key_bytes));
  payload.remove_prefix(sizeof(key_bytes));
  if (key_bytes == 0 || key_bytes >= payload.size()) return std::nullopt;
  return RegionOffer{.remote_key = std::string(payload.substr(0, key_bytes)),
                     .worker_address = std::string(payload.substr(key_bytes))};
}

}  // namespace baton
