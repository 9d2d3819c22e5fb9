// The puts to one peer: waiting, under way, and the flushes behind them.
//
// Puts and flushes of a stream are worked off in order, streams in turns, and all of it a bounded part at a time
// (Pump): a long put keeps neither heartbeats nor other streams or peers waiting. Two data paths:
//   tcp   pieces travel as frames and the receiver writes them; a frame is copied as it leaves. A flush is a frame
//         after them, and its answer.
//   shm   pieces are copied into the peer's mapped region (PeerRegion); a flush has nothing to wait for.
// I/O thread only.
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

  // Before the first put.
  void UseSharedMemory(PeerRegion region) { shm_ = std::move(region); }
  bool uses_shared_memory() const { return shm_.has_value(); }
  void set_region_bytes(uint64_t bytes) { region_bytes_ = bytes; }

  void Put(StreamId stream, std::span<const PutPiece> pieces);
  void Flush(StreamId stream, FlushDone done);

  // Does a part of what is waiting; true if it did anything.
  bool Pump();
  // While there is nothing else to do: makes later puts faster. True if it did anything.
  bool Prepare() { return !given_up_ && shm_.has_value() && shm_->Prefault(); }

  // The peer says that everything of `stream` before its oldest flush has landed. False if no such flush was asked for.
  bool OnFlushed(StreamId stream);

  // The peer is given up: nothing that waits will be put. Flushes, also later ones, wait for FailFlushes.
  void Stop();
  // After Stop: unmaps the peer's region. Nothing reads local memory or writes to the region any more.
  void LetGo() { shm_.reset(); }
  // Calls what waits for a flush.
  void FailFlushes(const absl::Status& why);

 private:
  // Of one stream before it is the next one's turn.
  static constexpr size_t kTurnBytes = 2 * kMaxPayloadBytes;

  struct Item {
    StreamId stream = 0;
    PutPiece piece;
    FlushDone flush;  // set: the item is a flush
  };
  struct Stream {
    std::deque<Item> waiting;
    int flushing = 0;         // asked of the peer
    uint64_t bytes_sent = 0;  // since the last flush
    absl::Status error;       // of a piece that was not taken
  };

  void Wait(Stream& stream, Item item);
  // These return false when too much is under way already.
  bool PumpFront(Stream& stream, size_t& budget);
  bool PumpPiece(Stream& stream, Item& item, size_t& budget);
  bool PumpFlush(Stream& stream, Item& item);
  void ForgetIfIdle(StreamId id);

  UcxChannel* const channel_;
  std::optional<PeerRegion> shm_;
  uint64_t region_bytes_ = 0;
  std::deque<StreamId> turns_;     // of the streams with something that waits
  size_t turn_left_ = kTurnBytes;  // of the first one's
  size_t waiting_items_ = 0;
  std::deque<Item> flushing_;  // tcp: flushes that the peer has not answered; after Stop: all there are
  bool given_up_ = false;
  std::map<StreamId, Stream> streams_;
};

}  // namespace baton
