// SPDX-License-Identifier: Apache-2.0
// Sends frames to one peer through a UCX endpoint, and reports when the connection is lost. I/O thread only.
//
// Frames leave in the order of the calls. UCX takes a frame at once or not at all; frames that it does not take wait
// here until Pump. The reasons:
//   - UCX never holds a frame back and never reads our memory later.
//   - UCX never exchanges addresses with the peer ("wireup"). UCX 1.13 aborts the process if a peer ends during wireup.
//
// The endpoint only sends. The peer sends through an endpoint of its own, to another UCX worker of ours (UcxNode). With
// one worker UCX would join both into one connection, and abort if that connection ends too early.
//
// Close must not be called from a UCX callback. The object may be destroyed once drained().
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

inline constexpr unsigned kFrameHandlerId = 1;  // UCX active message id of all frames

class UcxChannel {
 public:
  // Starts to connect to the worker at `worker_address`. Frames carry `session`.
  // A frame has at most `max_payload_bytes` of payload, which UCX takes at once.
  static absl::StatusOr<std::unique_ptr<UcxChannel>> Create(ucp_worker_h worker, const std::string& worker_address,
                                                            uint64_t session, size_t max_payload_bytes);
  UcxChannel(const UcxChannel&) = delete;
  UcxChannel& operator=(const UcxChannel&) = delete;

  uint64_t session() const { return session_; }
  size_t max_payload_bytes() const { return max_payload_bytes_; }

  void Send(FrameType type, std::string payload = "", uint64_t a = 0, uint64_t b = 0);
  // Sends `message` in as many frames as needed.
  void SendMessage(std::string message);
  // Sends a put of at most max_payload_bytes(). Returns false if UCX does not take it now or other frames wait: retry
  // after Pump.
  bool SendPut(uint64_t stream, uint64_t offset, const std::byte* local, size_t bytes);
  // Sends a heartbeat unless frames wait: any frame proves that this process is alive.
  void SendHeartbeat();

  // Sends waiting frames while UCX takes them. Returns true if any was sent.
  bool Pump();
  // Payload bytes of waiting frames.
  size_t queued_bytes() const { return queued_bytes_; }
  bool idle() const { return waiting_.empty(); }
  // Drops waiting messages, flushes and answers to flushes. Only the goodbye follows.
  void DropQueued();

  // OK until the connection is lost.
  const absl::Status& failure() const { return failure_; }
  bool failed() const { return !failure_.ok(); }

  // Closes the connection at once and drops waiting frames; drained() follows soon.
  void Close();
  bool closing() const { return closing_; }
  // Returns whether the connection is closed and UCX uses none of our memory.
  bool drained() const { return closed_; }

 private:
  // A waiting frame: `bytes` bytes of `payload` from `offset`.
  struct Frame {
    FrameHeader header;
    std::shared_ptr<const std::string> payload;
    size_t offset = 0;
    size_t bytes = 0;
  };

  UcxChannel(uint64_t session, size_t max_payload_bytes) : session_(session), max_payload_bytes_(max_payload_bytes) {}

  static void OnError(void* arg, ucp_ep_h endpoint, ucs_status_t status);
  static void OnClosed(void* request, ucs_status_t status, void* channel);

  void Queue(Frame frame);
  // Returns false if the connection has no room or is not established.
  bool TrySend(FrameHeader header, const void* data, size_t bytes);
  void Fail(ucs_status_t status);

  const uint64_t session_;
  const size_t max_payload_bytes_;
  ucp_ep_h endpoint_ = nullptr;
  uint32_t next_sequence_ = 0;
  std::deque<Frame> waiting_;
  size_t queued_bytes_ = 0;
  absl::Status failure_;
  bool closing_ = false;
  bool closed_ = false;
};

}  // namespace baton
