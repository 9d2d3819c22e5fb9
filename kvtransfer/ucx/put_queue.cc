// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/ucx/put_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace baton {
namespace {

// Limit per peer. A long prompt on a large model has up to a million pieces (8192 pages, 128 layers); several may wait.
constexpr size_t kMaxWaitingItems = 1 << 24;
constexpr size_t kPumpBytes = 1 << 20;  // per call: well under a millisecond
constexpr size_t kMaxShmPutBytes = 256 << 10;

}  // namespace

void PutQueue::Put(StreamId stream_id, std::span<const PutPiece> pieces) {
  Stream& stream = streams_[stream_id];
  for (const PutPiece& piece : pieces) {
    if (!stream.error.ok()) return;
    if (piece.bytes > region_bytes_ || piece.remote_offset > region_bytes_ - piece.bytes) {
      stream.error = absl::OutOfRangeError(absl::StrCat("put to [", piece.remote_offset, ", +", piece.bytes,
                                                        ") is outside the peer's region of ", region_bytes_, " bytes"));
    } else if (waiting_items_ >= kMaxWaitingItems) {
      stream.error = absl::ResourceExhaustedError(
          absl::StrCat("the put queue of the peer is full, expected at most ", kMaxWaitingItems, " waiting puts"));
    } else {
      Enqueue(stream, {.stream = stream_id, .piece = piece, .flush = nullptr});
    }
  }
}

void PutQueue::Flush(StreamId stream_id, FlushDone done) {
  Item flush{.stream = stream_id, .piece = {}, .flush = std::move(done)};
  if (given_up_) return flushing_.push_back(std::move(flush));
  Enqueue(streams_[stream_id], std::move(flush));
}

void PutQueue::Enqueue(Stream& stream, Item item) {
  if (stream.waiting.empty()) turns_.push_back(item.stream);
  stream.waiting.push_back(std::move(item));
  ++waiting_items_;
}

bool PutQueue::Pump() {
  size_t budget = kPumpBytes;
  bool worked = false;
  while (!turns_.empty() && budget > 0) {
    const StreamId id = turns_.front();
    Stream& stream = streams_.at(id);
    while (!stream.waiting.empty() && turn_left_ > 0 && budget > 0) {
      const size_t allowed = std::min(budget, turn_left_);
      size_t left = allowed;
      if (!PumpFront(stream, left)) return worked;  // the stream keeps the rest of its turn
      budget -= allowed - left;
      turn_left_ -= allowed - left;
      worked = true;
    }
    if (!stream.waiting.empty() && turn_left_ > 0) break;  // out of budget
    turns_.pop_front();
    turn_left_ = kTurnBytes;
    if (stream.waiting.empty()) {
      ForgetIfIdle(id);
    } else {
      turns_.push_back(id);
    }
  }
  return worked;
}

bool PutQueue::PumpFront(Stream& stream, size_t& budget) {
  Item& item = stream.waiting.front();
  if (!(item.flush != nullptr ? PumpFlush(stream, item) : PumpPiece(stream, item, budget))) return false;
  if (item.piece.bytes > 0) return true;  // the piece is not finished
  stream.waiting.pop_front();
  --waiting_items_;
  return true;
}

// Sends the next part of a piece. Returns false if the channel cannot take more now.
bool PutQueue::PumpPiece(Stream& stream, Item& item, size_t& budget) {
  PutPiece& piece = item.piece;
  const size_t bytes =
      std::min<size_t>({piece.bytes, budget, shm_.has_value() ? kMaxShmPutBytes : channel_->max_payload_bytes()});
  if (bytes > 0) {
    if (shm_.has_value()) {
      shm_->Put(piece.remote_offset, piece.local, bytes);
    } else {
      if (!channel_->SendPut(item.stream, piece.remote_offset, piece.local, bytes)) return false;
    }
  }
  stream.bytes_sent += bytes;
  piece.local += bytes;
  piece.remote_offset += bytes;
  piece.bytes -= bytes;
  budget -= bytes;
  return true;
}

bool PutQueue::PumpFlush(Stream& stream, Item& item) {
  if (!shm_.has_value()) {
    channel_->Send(FrameType::kFlush, "", item.stream, std::exchange(stream.bytes_sent, 0));
    ++stream.flushing;
    flushing_.push_back(std::move(item));
    return true;
  }
  stream.bytes_sent = 0;
  item.flush(std::exchange(stream.error, absl::OkStatus()));
  return true;
}

bool PutQueue::OnFlushed(StreamId stream_id) {
  if (flushing_.empty() || flushing_.front().stream != stream_id) return false;
  const Item item = std::move(flushing_.front());
  flushing_.pop_front();
  Stream& stream = streams_.at(stream_id);
  --stream.flushing;
  const absl::Status status = std::exchange(stream.error, absl::OkStatus());
  ForgetIfIdle(stream_id);
  item.flush(status);
  return true;
}

void PutQueue::ForgetIfIdle(StreamId id) {
  const Stream& stream = streams_.at(id);
  const bool idle = stream.waiting.empty() && stream.flushing == 0 && stream.bytes_sent == 0 && stream.error.ok();
  if (idle) streams_.erase(id);
}

void PutQueue::Stop() {
  given_up_ = true;
  for (const StreamId id : std::exchange(turns_, {})) {
    for (Item& item : std::exchange(streams_.at(id).waiting, {})) {
      if (item.flush != nullptr) flushing_.push_back(std::move(item));
    }
  }
  waiting_items_ = 0;
  turn_left_ = kTurnBytes;
}

void PutQueue::FailFlushes(const absl::Status& why) {
  for (Item& item : std::exchange(flushing_, {})) item.flush(why);
}

}  // namespace baton
