// The Transport between processes, over UCX: messages over tcp, data over tcp or shared memory.
//
// With a peer on the same host, in the same pid namespace, puts go straight into its region, which is mapped here
// ("ucx:shm", shared_region.h); else they travel as messages that the receiver copies to where they belong, after it
// asked AllowWrite
// ("ucx:tcp"). TransportOptions::path forces either. On shared memory the peer's process can write anywhere in the
// region until it lets go or dies; it must be trusted as far as the secret reaches.
//
// UCX is configured from within (ucx_worker.cc). Of what users set in the environment UCX_NET_DEVICES, UCX_LOG_LEVEL
// and UCX_HANDLE_ERRORS count, and a UCX_TLS that names no shared memory turns that path off.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kvtransfer/transport.h"

namespace baton {

// INVALID_ARGUMENT for options that make no sense; UNAVAILABLE if UCX cannot start.
absl::StatusOr<std::unique_ptr<Transport>> CreateUcxTransport(const TransportOptions& options);

}  // namespace baton
