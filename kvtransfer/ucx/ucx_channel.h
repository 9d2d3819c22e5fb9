// The way to one peer: a UCX endpoint over tcp that reports when the peer is lost, and the frames sent on it.
//
// What the peer sends comes through the worker's active message handler. Frames leave in the order of the calls. I/O
// thread only. Close must not be called from a UCX callback; the object may be destroyed once drained().
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
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
  ~UcxChannel();
  UcxChannel(const UcxChannel&) = delete;
  UcxChannel& operator=(const UcxChannel&) = delete;

  uint64_t session() const { return session_; }

  void Send(FrameType type, std::string payload = "", uint64_t a = 0, uint64_t b = 0);
  // `message` in as many frames as it takes.
  void SendMessage(std::string message);
  // Reads `local` until puts_in_flight() has gone down again.
  void SendPut(uint64_t stream, uint64_t offset, const std::byte* local, size_t bytes);
  // Unless the last one is still on its way.
  void SendHeartbeat();

  // Waiting in this process to be sent, puts not counted.
  size_t queued_bytes() const { return queued_bytes_; }
  int puts_in_flight() const { return puts_in_flight_; }

  // OK until the connection is lost.
  const absl::Status& failure() const { return failure_; }
  bool failed() const { return !failure_.ok(); }

  // Ends the connection at once. What is in flight is cancelled; drained() follows soon.
  void Close();
  bool closing() const { return closing_; }
  // Closed, and nothing of ours is used by UCX any more.
  bool drained() const { return closed_ && in_flight_ == 0; }

 private:
  struct Operation;

  explicit UcxChannel(uint64_t session) : session_(session) {}

  static void OnError(void* arg, ucp_ep_h endpoint, ucs_status_t status);
  static void OnSent(void* request, ucs_status_t status, void* operation);
  static void OnClosed(void* request, ucs_status_t status, void* channel);

  void Post(std::unique_ptr<Operation> operation, const void* data, size_t bytes);
  void Complete(const Operation& operation, ucs_status_t status);
  void Fail(ucs_status_t status);

  const uint64_t session_;
  ucp_ep_h endpoint_ = nullptr;
  uint32_t next_sequence_ = 0;
  size_t queued_bytes_ = 0;
  int in_flight_ = 0;
  int puts_in_flight_ = 0;
  bool heartbeat_in_flight_ = false;
  absl::Status failure_;
  bool closing_ = false;
  bool closed_ = false;
};

}  // namespace baton
