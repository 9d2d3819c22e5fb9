// The way to one peer: a UCX endpoint over tcp that reports when the peer is lost, and the frames sent on it.
//
// Frames leave in the order of the calls, each at once or not at all: what the connection does not take waits here
// until Pump. So UCX never holds a frame back nor reads our memory later; and it never exchanges addresses with the
// peer
// ("wireup"), in the midst of which UCX 1.13 aborts the process if the peer ends. For the same reason the endpoint only
// sends: what the peer sends comes through an endpoint of its own, to another worker of ours (UcxNode). UCX would join
// the two into one connection, and aborts if that ends too early.
//
// I/O thread only. Close must not be called from a UCX callback; the object may be destroyed once drained().
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvtransfer/ucx/frame.h"

namespace baton {

inline constexpr unsigned kFrameHandlerId = 1;  // of our active messages

class UcxChannel {
 public:
  // Starts connecting to the worker that `worker_address` describes; frames carry `session`.
  static absl::StatusOr<std::unique_ptr<UcxChannel>> Create(ucp_worker_h worker, const std::string& worker_address,
                                                            uint64_t session);
  UcxChannel(const UcxChannel&) = delete;
  UcxChannel& operator=(const UcxChannel&) = delete;

  uint64_t session() const { return session_; }

  void Send(FrameType type, std::string payload = "", uint64_t a = 0, uint64_t b = 0);
  // `message` in as many frames as it takes.
  void SendMessage(std::string message);
  // False if it cannot leave now, or other frames wait: try again after Pump. At most kMaxPayloadBytes.
  bool SendPut(uint64_t stream, uint64_t offset, const std::byte* local, size_t bytes);
  // Unless frames wait: the peer will hear from us as soon as it can.
  void SendHeartbeat();

  // Sends what waits, as far as it can leave now. True if anything left.
  bool Pump();
  // Waiting to be sent.
  size_t queued_bytes() const { return queued_bytes_; }
  bool idle() const { return waiting_.empty(); }
  // Forgets the messages, flushes and answers to flushes that wait: what is sent next is a farewell.
  void DropQueued();

  // OK until the connection is lost.
  const absl::Status& failure() const { return failure_; }
  bool failed() const { return !failure_.ok(); }

  // Ends the connection at once. What waits is dropped; drained() follows soon.
  void Close();
  bool closing() const { return closing_; }
  // Closed, and nothing of ours is used by UCX any more.
  bool drained() const { return closed_; }

 private:
  // A frame that waits: `bytes` of `payload` from `offset`.
  struct Frame {
    FrameHeader header;
    std::shared_ptr<const std::string> payload;
    size_t offset = 0;
    size_t bytes = 0;
  };

  explicit UcxChannel(uint64_t session) : session_(session) {}

  static void OnError(void* arg, ucp_ep_h endpoint, ucs_status_t status);
  static void OnClosed(void* request, ucs_status_t status, void* channel);

  void Queue(Frame frame);
  // False if the connection has no room, or is not there yet.
  bool TrySend(FrameHeader header, const void* data, size_t bytes);
  void Fail(ucs_status_t status);

  const uint64_t session_;
  ucp_ep_h endpoint_ = nullptr;
  uint32_t next_sequence_ = 0;
  std::deque<Frame> waiting_;
  size_t queued_bytes_ = 0;
  absl::Status failure_;
  bool closing_ = false;
  bool closed_ = false;
};

}  // namespace baton
