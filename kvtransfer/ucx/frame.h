// SPDX-License-Identifier: Apache-2.0
// Frames that two authenticated peers (introduction.h) send each other over UCX. Each frame is one UCX active message
// that fits a single fragment. Plain structs without conversion: all hosts are little-endian.
//
// A frame is a fixed header and a payload. The receiver knows the sender by the session id, which no third party can
// guess. Frames of one direction are numbered from 0, so that the receiver notices a lost or reordered frame.
//
//   frame        payload                            a                 b
//   identity     Identity
//   offer        RegionOffer, or empty: no region
//   ready                                           1: region mapped
//   heartbeat
//   message      part of a message                  message length    offset of the part
//   put          bytes                              stream            offset in the region
//   flush                                           stream            bytes put since the last flush
//   flushed                                         stream
//   goodbye      reason
//   goodbye-ack
//   unmapped                                        session
//
// "unmapped" names the session of an earlier connection of the two processes: its sender has unmapped the receiver's
// region.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace baton {

static_assert(std::endian::native == std::endian::little, "frames travel as they lie in memory");

enum class FrameType : uint32_t {
  kIdentity = 1,
  kOffer,
  kReady,
  kHeartbeat,
  kMessage,
  kPut,
  kFlush,
  kFlushed,
  kGoodbye,
  kGoodbyeAck,
  kUnmapped,
};

struct FrameHeader {
  uint64_t session = 0;
  uint32_t sequence = 0;
  FrameType type{};
  uint64_t a = 0;
  uint64_t b = 0;
};
static_assert(sizeof(FrameHeader) == 32 && std::is_trivially_copyable_v<FrameHeader>);

inline constexpr uint32_t kFrameVersion = 2;
// Largest payload: with the headers it fits a segment of tcp (network.h). Over tcp larger frames are faster.
inline constexpr size_t kMaxPayloadBytes = 224 << 10;
// A transport's messages hold at least this much payload, and so each frame but parts of messages and puts.
inline constexpr size_t kMinPayloadBytes = 1024;
inline constexpr size_t kMaxGoodbyeBytes = 512;

// Returns the bytes of a struct, as they travel.
template <typename Struct>
std::string_view AsPayload(const Struct& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// Returns nullopt if `payload` is not as long as the struct.
template <typename Struct>
std::optional<Struct> FromPayload(std::string_view payload) {
  if (payload.size() != sizeof(Struct)) return std::nullopt;
  Struct value;
  payload.copy(reinterpret_cast<char*>(&value), sizeof(value));
  return value;
}

// Returns nullopt if `bytes` is not a header of a known type.
inline std::optional<FrameHeader> ParseHeader(std::string_view bytes) {
  std::optional<FrameHeader> header = FromPayload<FrameHeader>(bytes);
  if (header && (header->type < FrameType::kIdentity || header->type > FrameType::kUnmapped)) header.reset();
  return header;
}

// Identifies a process. Two processes compare identities to find out whether they can share memory.
struct Identity {
  std::array<char, 40> boot_id{};  // of the running kernel
  uint64_t pid_namespace = 0;
  uint64_t pid = 0;
  uint64_t start_time = 0;  // of the process, in kernel ticks: detects reuse of the pid
  uint64_t region_bytes = 0;
  uint64_t shares_memory = 0;  // 1: the process allows the shared memory path
};
static_assert(sizeof(Identity) == 80 && std::is_trivially_copyable_v<Identity>);

// Location of a region, for processes of the same host (shared_region.h).
struct RegionOffer {
  uint64_t fd = 0;  // descriptor number in the offering process
  uint64_t device = 0;
  uint64_t inode = 0;
};
static_assert(sizeof(RegionOffer) == 24 && std::is_trivially_copyable_v<RegionOffer>);

}  // namespace baton
