// Makes a transport of the kind that the options name.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kvtransfer/transport.h"

namespace baton {

// INVALID_ARGUMENT, naming the option, for an unknown kind or options that make no sense.
absl::StatusOr<std::unique_ptr<Transport>> CreateTransport(const TransportOptions& options);

}  // namespace baton
