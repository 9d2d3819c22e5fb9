// Addresses as options give them: "host:port".
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

// INVALID_ARGUMENT, with the text, unless it is "host:port" with a port of 0 to 65535.
absl::StatusOr<HostPort> ParseHostPort(std::string_view address);

// OK when a listener could be bound to every address that the host stands for; else UNAVAILABLE with the address and
// the reason ("Address already in use"). Servers of libraries that do not tell why they cannot listen are preceded by
// this.
absl::Status CheckCanListen(std::string_view address);

}  // namespace baton
