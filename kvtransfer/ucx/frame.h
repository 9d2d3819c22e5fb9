// What two introduced peers (introduction.h) send each other over UCX: frames, each one active message that fits a
// single fragment.
//
// A frame is a fixed header and a payload. It carries the id of its session, by which the receiver knows its sender,
// and which nobody else can guess. Frames of one direction are numbered from 0, so that a lost or reordered one is
// noticed. All hosts are little-endian.
//
//   frame        payload                    a                 b
//   identity     Identity
//   offer        RegionOffer                                  (payload empty: no shared memory)
//   ready                                   1: attached
//   heartbeat
//   message      part of a message          its length        offset of the part
//   put          bytes                      stream            offset in the region
//   flush                                   stream            bytes put since the last flush
//   flushed                                 stream
//   goodbye      why
//   goodbye-ack
//   let-go                                  session           (of an earlier connection between the two processes)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace baton {

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
  kLetGo,
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
// Payload of one frame: as much as fits UCX's segment (ucx_worker.cc) with the headers. Over tcp larger is faster.
inline constexpr size_t kMaxPayloadBytes = 224 << 10;
inline constexpr size_t kMaxGoodbyeBytes = 512;

// Nothing if `bytes` is not a header of a known type.
std::optional<FrameHeader> ParseHeader(const void* bytes, size_t size);

// Who a process is, so that two can find out whether they can share memory and watch each other's life.
struct Identity {
  std::array<char, 40> boot_id{};  // of the running kernel
  uint64_t pid_namespace = 0;
  uint64_t pid = 0;
  uint64_t start_time = 0;  // of the process, in the kernel's ticks: tells it from a later one with its pid
  uint64_t region_bytes = 0;
  uint64_t shares_memory = 0;  // 1: would use the shared memory path
};
static_assert(sizeof(Identity) == 80 && std::is_trivially_copyable_v<Identity>);

// Whether two are of one process.
bool IsSameProcess(const Identity& a, const Identity& b);

std::string_view AsPayload(const Identity& identity);
std::optional<Identity> ParseIdentity(std::string_view payload);

// Where a process of the same host finds a region (shared_region.h).
struct RegionOffer {
  uint64_t fd = 0;  // of the process that offers it
  uint64_t device = 0;
  uint64_t inode = 0;
};
static_assert(sizeof(RegionOffer) == 24 && std::is_trivially_copyable_v<RegionOffer>);

std::string_view AsPayload(const RegionOffer& offer);
std::optional<RegionOffer> ParseOffer(std::string_view payload);

}  // namespace baton
