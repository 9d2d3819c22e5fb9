// SPDX-License-Identifier: Apache-2.0
// Queues puts and flushes to one peer. I/O thread only.
//
// The queue processes items of a stream in order and streams in turns. Pump does a bounded amount of work, so that a
// long put does not delay heartbeats, other streams or other peers. Two data paths:
//   tcp   a put travels as frames, and the receiver writes the bytes. UCX copies a frame when it is sent. A flush is a
//         frame after the puts, and the peer's answer.
//   shm   a put is copied into the peer's mapped region (PeerRegion). A flush completes at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "kvtransfer/transport.h"
#include "kvtransfer/ucx/shared_region.h"
#include "kvtransfer/ucx/ucx_channel.h"

namespace baton {

class PutQueue {
 public:
  using FlushDone = std::function<void(absl::Status)>;

  explicit PutQueue(UcxChannel* channel) : channel_(channel) {}

  // Call before the first put.
  void UseSharedMemory(PeerRegion region) { shm_ = std::move(region); }
  bool uses_shared_memory() const { return shm_.has_value(); }
  void set_region_bytes(uint64_t bytes) { region_bytes_ = bytes; }

  void Put(StreamId stream, std::span<const PutPiece> pieces);
  void Flush(StreamId stream, FlushDone done);

  // Does a bounded part of the waiting work. Returns true if anything was done.
  bool Pump();
  // Call when idle: prefaults the peer's region to speed up later puts. Returns true if anything was done.
  bool Prepare() { return !given_up_ && shm_.has_value() && shm_->Prefault(); }

  // Handles the peer's answer to the oldest flush: all puts of `stream` before it have landed. Returns false if no such
  // flush is pending.
  bool OnFlushed(StreamId stream);

  // The peer is given up: drops all waiting puts. Pending and later flushes wait for FailFlushes.
  void Stop();
  // After Stop: unmaps the peer's region. From now on the queue neither reads local memory nor writes to the region.
  void Unmap() { shm_.reset(); }
  // Completes all pending flushes with `why`.
  void FailFlushes(const absl::Status& why);

 private:
  // Bytes of one stream before the next stream's turn.
  static constexpr size_t kTurnBytes = 2 * kMaxPayloadBytes;

  struct Item {
    StreamId stream = 0;
    PutPiece piece;
    FlushDone flush;  // if set, the item is a flush
  };
  struct Stream {
    std::deque<Item> waiting;
    int flushing = 0;         // flushes sent and not answered
    uint64_t bytes_sent = 0;  // bytes since the last flush
    absl::Status error;       // set if a put was refused
  };

  void Enqueue(Stream& stream, Item item);
  // These functions return false if the channel cannot take more now.
  bool PumpFront(Stream& stream, size_t& budget);
  bool PumpPiece(Stream& stream, Item& item, size_t& budget);
  bool PumpFlush(Stream& stream, Item& item);
  void ForgetIfIdle(StreamId id);

  UcxChannel* const channel_;
  std::optional<PeerRegion> shm_;
  uint64_t region_bytes_ = 0;
  std::deque<StreamId> turns_;     // streams with waiting items
  size_t turn_left_ = kTurnBytes;  // bytes left of the first stream's turn
  size_t waiting_items_ = 0;
  std::deque<Item> flushing_;  // tcp: flushes that the peer has not answered; after Stop: all flushes
  bool given_up_ = false;
  std::map<StreamId, Stream> streams_;
};

}  // namespace baton
