#include "kvtransfer/ucx/put_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace baton {
namespace {

// Of one peer. A long prompt on a large model has up to a million (8192 pages, 128 layers); more than one may wait.
constexpr size_t kMaxWaitingItems = 1 << 24;
constexpr size_t kPumpBytes = 1 << 20;  // in one go: well under a millisecond
constexpr size_t kMaxShmPutBytes = 256 << 10;
constexpr int kMaxShmPutsInFlight = 32;

}  // namespace

void PutQueue::Put(StreamId stream_id, std::span<const PutPiece> pieces) {
  Stream& stream = streams_[stream_id];
  for (const PutPiece& piece : pieces) {
    if (!stream.error.ok()) return;
    if (piece.bytes > region_bytes_ || piece.remote_offset > region_bytes_ - piece.bytes) {
      stream.error = absl::OutOfRangeError(absl::StrCat("put of [", piece.remote_offset, ", +", piece.bytes,
                                                        ") into a region of ", region_bytes_, " bytes"));
    } else if (waiting_.size() >= kMaxWaitingItems) {
      stream.error =
          absl::ResourceExhaustedError(absl::StrCat("more than ", kMaxWaitingItems, " puts wait for the peer"));
    } else {
      waiting_.push_back({.stream = stream_id, .piece = piece, .flush = nullptr});
      ++stream.items;
    }
  }
}

void PutQueue::Flush(StreamId stream, FlushDone done) {
  ++streams_[stream].items;
  (given_up_ ? flushing_ : waiting_).push_back({.stream = stream, .piece = {}, .flush = std::move(done)});
}

bool PutQueue::Pump() {
  size_t budget = kPumpBytes;
  bool worked = false;
  while (!waiting_.empty() && budget > 0) {
    Item& item = waiting_.front();
    if (!(item.flush != nullptr ? PumpFlush(item) : PumpPiece(item, budget))) break;
    worked = true;
    if (item.piece.bytes == 0) waiting_.pop_front();
  }
  return worked;
}

// Sends the next part of a piece; false if too much is under way.
bool PutQueue::PumpPiece(Item& item, size_t& budget) {
  PutPiece& piece = item.piece;
  const size_t bytes = std::min<size_t>({piece.bytes, budget, shm_ != nullptr ? kMaxShmPutBytes : kMaxPayloadBytes});
  if (bytes > 0) {
    if (shm_ != nullptr) {
      if (shm_->pending() >= kMaxShmPutsInFlight) return false;
      shm_->Put(piece.remote_offset, piece.local, bytes);
    } else {
      if (!channel_->SendPut(item.stream, piece.remote_offset, piece.local, bytes)) return false;
    }
  }
  streams_[item.stream].bytes_sent += bytes;
  piece.local += bytes;
  piece.remote_offset += bytes;
  piece.bytes -= bytes;
  budget -= bytes;
  if (piece.bytes == 0) static_cast<void>(ItemDone(item));
  return true;
}

bool PutQueue::PumpFlush(Item& item) {
  Stream& stream = streams_[item.stream];
  if (shm_ == nullptr) {
    channel_->Send(FrameType::kFlush, "", item.stream, std::exchange(stream.bytes_sent, 0));
    flushing_.push_back(std::move(item));
    return true;
  }
  if (!std::exchange(shm_flush_started_, true)) shm_->Flush();
  if (shm_->pending() > 0) return false;
  shm_flush_started_ = false;
  stream.bytes_sent = 0;
  absl::Status status = ItemDone(item);
  if (status.ok()) status = shm_->failure();
  item.flush(status);
  return true;
}

bool PutQueue::OnFlushed(StreamId stream_id) {
  if (flushing_.empty() || flushing_.front().stream != stream_id) return false;
  const Item item = std::move(flushing_.front());
  flushing_.pop_front();
  item.flush(ItemDone(item));
  return true;
}

absl::Status PutQueue::ItemDone(const Item& item) {
  const auto it = streams_.find(item.stream);
  Stream& stream = it->second;
  absl::Status error;
  if (item.flush != nullptr) error = std::exchange(stream.error, absl::OkStatus());
  if (--stream.items == 0 && stream.bytes_sent == 0 && stream.error.ok()) streams_.erase(it);
  return error;
}

void PutQueue::Stop() {
  given_up_ = true;
  std::deque<Item> flushes;
  for (Item& item : flushing_) flushes.push_back(std::move(item));
  for (Item& item : waiting_) {
    if (item.flush != nullptr) flushes.push_back(std::move(item));
  }
  waiting_.clear();
  flushing_ = std::move(flushes);
}

void PutQueue::LetGo() {
  if (shm_ != nullptr) shm_->Close();
}

void PutQueue::FailFlushes(const absl::Status& why) {
  for (Item& item : std::exchange(flushing_, {})) item.flush(why);
}

}  // namespace baton
