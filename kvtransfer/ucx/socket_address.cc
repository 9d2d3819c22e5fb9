// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/ucx/socket_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "common/status_macros.h"

namespace baton {
namespace {

// Both addresses must be of the same family.
bool SameHost(const sockaddr& a, const SocketAddress& b) {
  if (a.sa_family == AF_INET6) {
    return std::memcmp(&reinterpret_cast<const sockaddr_in6&>(a).sin6_addr,
                       &reinterpret_cast<const sockaddr_in6&>(b.storage).sin6_addr, sizeof(in6_addr)) == 0;
  }
  return reinterpret_cast<const sockaddr_in&>(a).sin_addr.s_addr ==
         reinterpret_cast<const sockaddr_in&>(b.storage).sin_addr.s_addr;
}

}  // namespace

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

std::string PeerName(int socket) {
  SocketAddress peer;
  peer.bytes = sizeof(peer.storage);
  return getpeername(socket, reinterpret_cast<sockaddr*>(&peer.storage), &peer.bytes) == 0 ? peer.ToString()
                                                                                           : "unknown";
}

absl::StatusOr<std::string> DeviceOf(const SocketAddress& address) {
  if (address.IsAnyHost()) return "";
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return absl::UnavailableError("cannot list the network devices of this host");
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, &freeifaddrs);
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != address.storage.ss_family) continue;
    // The loopback device has all of 127.0.0.0/8, not only the listed address.
    const bool both_loopback = address.IsLoopback() && (entry->ifa_flags & IFF_LOOPBACK) != 0;
    if (!both_loopback && !SameHost(*entry->ifa_addr, address)) continue;
    const std::string name = entry->ifa_name;
    return name.substr(0, name.find(':'));  // without the label of an address, as in "eth0:1"
  }
  return absl::NotFoundError(absl::StrCat("no network device of this host has the address ", address.ToString()));
}

}  // namespace baton
