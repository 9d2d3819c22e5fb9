#include "kvtransfer/ucx/ucx_channel.h"

#include <algorithm>
#include <utility>

#include "kvtransfer/ucx/ucx_worker.h"

namespace baton {

// A frame on its way; UCX reads the header and the payload until it is sent.
struct UcxChannel::Operation {
  UcxChannel* channel = nullptr;
  FrameHeader header;
  std::shared_ptr<const std::string> payload;  // unless the payload is memory of the user
  size_t queued_bytes = 0;
};

absl::StatusOr<std::unique_ptr<UcxChannel>> UcxChannel::Create(ucp_worker_h worker, const std::string& worker_address,
                                                               uint64_t session) {
  std::unique_ptr<UcxChannel> channel(new UcxChannel(session));
  ucp_ep_params_t params{};
  params.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(worker_address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = &UcxChannel::OnError;
  params.err_handler.arg = channel.get();
  const ucs_status_t status = ucp_ep_create(worker, &params, &channel->endpoint_);
  if (status != UCS_OK) return UcxError(status, "creating the UCX endpoint to a peer");
  return channel;
}

UcxChannel::~UcxChannel() = default;

void UcxChannel::OnError(void* arg, ucp_ep_h /*endpoint*/, ucs_status_t status) {
  static_cast<UcxChannel*>(arg)->Fail(status);
}

void UcxChannel::Fail(ucs_status_t status) {
  if (failure_.ok()) {
    failure_ = absl::UnavailableError(std::string("the connection is lost: ") + ucs_status_string(status));
  }
}

void UcxChannel::Send(FrameType type, std::string payload, uint64_t a, uint64_t b) {
  auto operation = std::make_unique<Operation>();
  operation->header = {.type = type, .a = a, .b = b};
  operation->payload = std::make_shared<const std::string>(std::move(payload));
  const std::string& data = *operation->payload;
  Post(std::move(operation), data.data(), data.size());
}

void UcxChannel::SendMessage(std::string message) {
  const auto shared = std::make_shared<const std::string>(std::move(message));
  size_t offset = 0;
  do {
    const size_t bytes = std::min(kMaxPayloadBytes, shared->size() - offset);
    auto operation = std::make_unique<Operation>();
    operation->header = {.type = FrameType::kMessage, .a = shared->size(), .b = offset};
    operation->payload = shared;
    operation->queued_bytes = bytes;
    Post(std::move(operation), shared->data() + offset, bytes);
    offset += bytes;
  } while (offset < shared->size());
}

void UcxChannel::SendPut(uint64_t stream, uint64_t offset, const std::byte* local, size_t bytes) {
  auto operation = std::make_unique<Operation>();
  operation->header = {.type = FrameType::kPut, .a = stream, .b = offset};
  Post(std::move(operation), local, bytes);
}

void UcxChannel::SendHeartbeat() {
  if (!heartbeat_in_flight_) Send(FrameType::kHeartbeat);
}

void UcxChannel::Post(std::unique_ptr<Operation> operation, const void* data, size_t bytes) {
  if (closing_ || failed()) return;
  Operation* const owned = operation.release();  // by OnSent, or by us if it is sent at once
  Operation& op = *owned;
  op.channel = this;
  op.header.session = session_;
  op.header.sequence = next_sequence_++;
  ++in_flight_;
  queued_bytes_ += op.queued_bytes;
  if (op.header.type == FrameType::kPut) ++puts_in_flight_;
  if (op.header.type == FrameType::kHeartbeat) heartbeat_in_flight_ = true;
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  params.cb.send = &UcxChannel::OnSent;
  params.user_data = &op;
  const ucs_status_ptr_t request =
      ucp_am_send_nbx(endpoint_, kFrameHandlerId, &op.header, sizeof(op.header), data, bytes, &params);
  if (UCS_PTR_IS_PTR(request)) return;
  Complete(op, UCS_PTR_STATUS(request));
  delete owned;
}

void UcxChannel::OnSent(void* request, ucs_status_t status, void* operation) {
  const std::unique_ptr<Operation> op(static_cast<Operation*>(operation));
  op->channel->Complete(*op, status);
  ucp_request_free(request);
}

void UcxChannel::Complete(const Operation& operation, ucs_status_t status) {
  --in_flight_;
  queued_bytes_ -= operation.queued_bytes;
  if (operation.header.type == FrameType::kPut) --puts_in_flight_;
  if (operation.header.type == FrameType::kHeartbeat) heartbeat_in_flight_ = false;
  if (status != UCS_OK) Fail(status);
}

void UcxChannel::Close() {
  if (closing_) return;
  closing_ = true;
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  params.cb.send = &UcxChannel::OnClosed;
  params.user_data = this;
  // An error means that the endpoint is gone already.
  if (!UCS_PTR_IS_PTR(ucp_ep_close_nbx(endpoint_, &params))) closed_ = true;
}

void UcxChannel::OnClosed(void* request, ucs_status_t /*status*/, void* channel) {
  static_cast<UcxChannel*>(channel)->closed_ = true;
  ucp_request_free(request);
}

}  // namespace baton
