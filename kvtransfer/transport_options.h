// SPDX-License-Identifier: Apache-2.0
// The checks of options for every transport.
#pragma once

#include "absl/status/status.h"
#include "kvtransfer/transport.h"

namespace baton {

// INVALID_ARGUMENT names the option and the expected value.
absl::Status CheckTransportOptions(const TransportOptions& options);

}  // namespace baton
