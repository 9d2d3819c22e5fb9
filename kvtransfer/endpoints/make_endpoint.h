// SPDX-License-Identifier: Apache-2.0
// Makes endpoints without starting their transport, so that a sender and a receiver can share a transport.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kvtransfer/endpoints/endpoints.h"
#include "kvtransfer/transport.h"

namespace baton {

template <typename T>
struct Endpoint {
  std::unique_ptr<T> endpoint;
  TransportEvents* events = nullptr;  // implemented by `endpoint`
};

absl::StatusOr<Endpoint<HandoffSender>> MakeSender(const HandoffIdentity& identity, const SenderOptions& options,
                                                   Transport* transport, PagePool* pool);
absl::StatusOr<Endpoint<HandoffReceiver>> MakeReceiver(const HandoffIdentity& identity, const ReceiverOptions& options,
                                                       Transport* transport, PagePool* pool, HandoffCapacity* capacity,
                                                       HandoffReceiver::Events events);

}  // namespace baton
