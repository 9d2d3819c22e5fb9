// SPDX-License-Identifier: Apache-2.0
// Network addresses in options: "host:port".
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton {

struct HostPort {
  std::string host;  // without the brackets of "[::1]:80"
  int port = 0;
};

// Parses "host:port". INVALID_ARGUMENT quotes `address` if it has another form or its port is not 0 to 65535.
absl::StatusOr<HostPort> ParseHostPort(std::string_view address);

// Checks that a listener can bind every address that the host resolves to. UNAVAILABLE names the address and the reason
// ("Address already in use"). For servers whose library does not report why it cannot listen.
absl::Status CheckCanListen(std::string_view address);

}  // namespace baton
