// Checks that hold for every kind of transport.
#pragma once

#include "absl/status/status.h"
#include "kvtransfer/transport.h"

namespace baton {

// INVALID_ARGUMENT naming the option and what was expected.
absl::Status CheckTransportOptions(const TransportOptions& options);

}  // namespace baton
