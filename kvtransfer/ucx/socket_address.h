// SPDX-License-Identifier: Apache-2.0
// Converts between socket addresses and "host:port".
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace baton {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  std::string ToString() const;
  int port() const;
  bool IsAnyHost() const;   // 0.0.0.0 or ::
  bool IsLoopback() const;  // 127.0.0.0/8 or ::1
};

// Resolves `address`, host:port, to its first socket address. INVALID_ARGUMENT if it is not host:port; UNAVAILABLE if
// the name has no address. May wait for a name server, unless `numeric_only`: then a name is UNAVAILABLE at once.
absl::StatusOr<SocketAddress> ResolveAddress(const std::string& address, bool numeric_only);

// Returns the address of the peer of a connected socket, or "unknown".
std::string PeerName(int socket);

// Returns the name of this host's network device that has `address`; empty for an address that means all devices.
// NOT_FOUND if no device has the address.
absl::StatusOr<std::string> DeviceOf(const SocketAddress& address);

}  // namespace baton
