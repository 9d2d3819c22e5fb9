// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/ucx/ucx_channel.h"

#include <algorithm>
#include <utility>

#include "common/status_macros.h"
#include "kvtransfer/ucx/ucx_worker.h"

namespace baton {

absl::StatusOr<std::unique_ptr<UcxChannel>> UcxChannel::Create(ucp_worker_h worker, const std::string& worker_address,
                                                               uint64_t session, size_t max_payload_bytes) {
  std::unique_ptr<UcxChannel> channel(new UcxChannel(session, max_payload_bytes));
  ucp_ep_params_t params{};
  params.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(worker_address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = &UcxChannel::OnError;
  params.err_handler.arg = channel.get();
  BATON_RETURN_IF_ERROR(FromUcx(ucp_ep_create(worker, &params, &channel->endpoint_),
                                "cannot create the UCX endpoint to a peer (on another network device?)"));
  return channel;
}

void UcxChannel::OnError(void* arg, ucp_ep_h /*endpoint*/, ucs_status_t status) {
  static_cast<UcxChannel*>(arg)->Fail(status);
}

void UcxChannel::Fail(ucs_status_t status) {
  if (failure_.ok()) {
    failure_ = absl::UnavailableError(std::string("the connection to the peer is lost: ") + ucs_status_string(status));
  }
}

void UcxChannel::Send(FrameType type, std::string payload, uint64_t a, uint64_t b) {
  const size_t bytes = payload.size();
  Queue({.header = {.type = type, .a = a, .b = b},
         .payload = std::make_shared<const std::string>(std::move(payload)),
         .bytes = bytes});
}

void UcxChannel::SendMessage(std::string message) {
  const auto shared = std::make_shared<const std::string>(std::move(message));
  size_t offset = 0;
  do {
    const size_t bytes = std::min(max_payload_bytes_, shared->size() - offset);
    Queue({.header = {.type = FrameType::kMessage, .a = shared->size(), .b = offset},
           .payload = shared,
           .offset = offset,
           .bytes = bytes});
    offset += bytes;
  } while (offset < shared->size());
}

bool UcxChannel::SendPut(uint64_t stream, uint64_t offset, const std::byte* local, size_t bytes) {
  return waiting_.empty() && TrySend({.type = FrameType::kPut, .a = stream, .b = offset}, local, bytes);
}

void UcxChannel::SendHeartbeat() {
  if (waiting_.empty()) Send(FrameType::kHeartbeat);
}

void UcxChannel::Queue(Frame frame) {
  if (closing_ || failed()) return;
  queued_bytes_ += frame.bytes;
  waiting_.push_back(std::move(frame));
  Pump();
}

bool UcxChannel::Pump() {
  bool sent = false;
  while (!waiting_.empty() && !closing_ && !failed()) {
    const Frame& frame = waiting_.front();
    if (!TrySend(frame.header, frame.payload->data() + frame.offset, frame.bytes)) break;
    queued_bytes_ -= frame.bytes;
    waiting_.pop_front();
    sent = true;
  }
  return sent;
}

void UcxChannel::DropQueued() {
  std::erase_if(waiting_, [this](const Frame& frame) {
    const FrameType type = frame.header.type;
    const bool drop = type == FrameType::kMessage || type == FrameType::kFlush || type == FrameType::kFlushed;
    if (drop) queued_bytes_ -= frame.bytes;
    return drop;
  });
}

bool UcxChannel::TrySend(FrameHeader header, const void* data, size_t bytes) {
  if (closing_ || failed()) return false;
  header.session = session_;
  header.sequence = next_sequence_;
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL | UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  const ucs_status_ptr_t result =
      ucp_am_send_nbx(endpoint_, kFrameHandlerId, &header, sizeof(header), data, bytes, &params);
  const ucs_status_t status = UCS_PTR_STATUS(result);
  if (status == UCS_ERR_NO_RESOURCE) return false;
  if (status != UCS_OK) {
    Fail(status);
    return false;
  }
  ++next_sequence_;
  return true;
}

void UcxChannel::Close() {
  if (closing_) return;
  closing_ = true;
  waiting_.clear();
  queued_bytes_ = 0;
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  params.cb.send = &UcxChannel::OnClosed;
  params.user_data = this;
  // An error means that the endpoint is already gone.
  if (!UCS_PTR_IS_PTR(ucp_ep_close_nbx(endpoint_, &params))) closed_ = true;
}

void UcxChannel::OnClosed(void* request, ucs_status_t /*status*/, void* channel) {
  static_cast<UcxChannel*>(channel)->closed_ = true;
  ucp_request_free(request);
}

}  // namespace baton
