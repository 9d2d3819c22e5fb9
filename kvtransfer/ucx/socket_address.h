// Socket addresses from and to "host:port".
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

// The first address that `address`, host:port, stands for. `numeric_only`: UNAVAILABLE at once for a name. Otherwise it
// may wait for a name server. INVALID_ARGUMENT if it is not host:port; UNAVAILABLE if the name has no address.
absl::StatusOr<SocketAddress> ResolveAddress(const std::string& address, bool numeric_only);

// Who is at the other end of a connected socket; "unknown" if that is not to be found out.
std::string PeerName(int socket);

// The name of this host's network device that has `address`; empty if it stands for all. NOT_FOUND if none has it.
absl::StatusOr<std::string> DeviceOf(const SocketAddress& address);

}  // namespace baton
