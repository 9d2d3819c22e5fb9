// Endpoints that are not started yet: for one of them on a transport of its own, or for both on one.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kvtransfer/endpoints/endpoints.h"
#include "kvtransfer/transport.h"

namespace baton {

template <typename T>
struct Endpoint {
  std::unique_ptr<T> endpoint;
  TransportEvents* events = nullptr;  // of `endpoint`: what it wants to hear of the transport
};

absl::StatusOr<Endpoint<HandoffSender>> MakeSender(const HandoffIdentity& identity, const SenderOptions& options,
                                                   Transport* transport, PagePool* pool);
absl::StatusOr<Endpoint<HandoffReceiver>> MakeReceiver(const HandoffIdentity& identity, const ReceiverOptions& options,
                                                       Transport* transport, PagePool* pool, HandoffCapacity* capacity,
                                                       HandoffReceiver::Events events);

}  // namespace baton
