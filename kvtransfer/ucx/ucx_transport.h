// SPDX-License-Identifier: Apache-2.0
// The Transport between processes, over UCX. Thread-safety and ownership: kvtransfer/transport.h.
//
//   path      peer                               puts
//   ucx:shm   same host, user and pid namespace  stores into the peer's mapped region (shared_region.h)
//   ucx:tcp   any                                frames, which the receiver copies into place after AllowWrite
//
// TransportOptions::path forces a path. On shared memory a peer's process can write anywhere in the region until the
// peer unmaps it or dies; authentication by the secret is the only protection.
//
// UCX is configured in ucx_worker.cc. Of the environment, only UCX_NET_DEVICES, UCX_LOG_LEVEL and UCX_HANDLE_ERRORS
// count. A UCX_TLS without shared memory disables ucx:shm.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kvtransfer/transport.h"

namespace baton {

// INVALID_ARGUMENT for invalid options; UNAVAILABLE if UCX cannot start.
absl::StatusOr<std::unique_ptr<Transport>> CreateUcxTransport(const TransportOptions& options);

}  // namespace baton
