// SPDX-License-Identifier: Apache-2.0
// Makes endpoints without starting their transport, so that a sender and a receiver can share a transport.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kvtransfer/endpoints/endpoints.h"
#include "kvtransfer/transport.h"
#include "kvtransfer/wire/hello.h"

namespace baton {

// An endpoint that is ready for its transport's events.
class TransportSender : public HandoffSender, public TransportEvents {};
class TransportReceiver : public HandoffReceiver, public TransportEvents {};

inline handoff::Hello HelloOf(const HandoffIdentity& identity, const PagePool& pool) {
  return {.worker_id = identity.worker_id,
          .epoch = identity.epoch,
          .numerics_id = identity.numerics_id,
          .layout = pool.layout().ToString(),
          .pages_total = pool.pages_total()};
}

absl::StatusOr<std::unique_ptr<TransportSender>> MakeSender(const HandoffIdentity& identity,
                                                            const SenderOptions& options, Transport* transport,
                                                            PagePool* pool);
absl::StatusOr<std::unique_ptr<TransportReceiver>> MakeReceiver(const HandoffIdentity& identity,
                                                                const ReceiverOptions& options, Transport* transport,
                                                                PagePool* pool, HandoffCapacity* capacity,
                                                                HandoffReceiver::Events events);

}  // namespace baton
