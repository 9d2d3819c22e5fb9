#include "kvtransfer/ucx/socket_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "common/status_macros.h"

namespace baton {

std::string SocketAddress::ToString() const {
  std::array<char, INET6_ADDRSTRLEN> host{};
  if (storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    inet_ntop(AF_INET6, &v6.sin6_addr, host.data(), host.size());
    return absl::StrCat("[", host.data(), "]:", port());
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
  inet_ntop(AF_INET, &v4.sin_addr, host.data(), host.size());
  return absl::StrCat(host.data(), ":", port());
}

int SocketAddress::port() const {
  return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(storage).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

bool SocketAddress::IsAnyHost() const {
  if (storage.ss_family == AF_INET6) {
    return std::memcmp(&reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr, &in6addr_any, sizeof(in6addr_any)) ==
           0;
  }
  return reinterpret_cast<const sockaddr_in&>(storage).sin_addr.s_addr == htonl(INADDR_ANY);
}

bool SocketAddress::IsLoopback() const {
  if (storage.ss_family == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr);
  }
  return ntohl(reinterpret_cast<const sockaddr_in&>(storage).sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

absl::StatusOr<SocketAddress> ResolveAddress(const std::string& address, bool numeric_only) {
  BATON_ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(address));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (numeric_only ? AI_NUMERICHOST : 0);
  addrinfo* found = nullptr;
  const int error = getaddrinfo(parsed.host.c_str(), absl::StrCat(parsed.port).c_str(), &hints, &found);
  if (error != 0) return absl::UnavailableError(absl::StrCat(address, ": ", gai_strerror(error)));
  SocketAddress result;
  std::memcpy(&result.storage, found->ai_addr, found->ai_addrlen);
  result.bytes = found->ai_addrlen;
  freeaddrinfo(found);
  return result;
}

}  // namespace baton
