// SPDX-License-Identifier: Apache-2.0
#include "common/address.h"

#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "absl/strings/numbers.h"
#include "common/file_descriptor.h"
#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {
namespace {

struct FreeAddrInfo {
  void operator()(addrinfo* info) const { freeaddrinfo(info); }
};

// Returns 0 or the errno of bind(). An address family that this machine lacks counts as success.
int TryBind(const addrinfo& info) {
  const FileDescriptor fd(socket(info.ai_family, info.ai_socktype | SOCK_CLOEXEC, info.ai_protocol));
  if (!fd.valid()) return errno == EAFNOSUPPORT ? 0 : errno;
  const int on = 1;
  // Allows a port with connections in TIME_WAIT, as servers do.
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (info.ai_family == AF_INET6) setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  if (bind(fd.get(), info.ai_addr, info.ai_addrlen) == 0) return 0;
  return errno == EADDRNOTAVAIL && info.ai_family == AF_INET6 ? 0 : errno;
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(std::string_view address) {
  const auto error = [&] {
    return absl::InvalidArgumentError(
        Concat("\"", address, "\" is not an address, expected host:port with a port of 0 to 65535"));
  };
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return error();
  std::string_view host = address.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return error();  // IPv6 without brackets: the port is ambiguous
  }
  HostPort parsed{.host = std::string(host)};
  if (host.empty() || !absl::SimpleAtoi(ToAbsl(address.substr(colon + 1)), &parsed.port) || parsed.port < 0 ||
      parsed.port > 65535) {
    return error();
  }
  return parsed;
}

absl::Status CheckCanListen(std::string_view address) {
  BATON_ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(address));
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (int code = getaddrinfo(parsed.host.c_str(), Concat(parsed.port).c_str(), &hints, &list); code != 0) {
    return absl::UnavailableError(Concat("cannot listen on ", address, ": ", gai_strerror(code)));
  }
  const std::unique_ptr<addrinfo, FreeAddrInfo> owned(list);
  for (const addrinfo* info = list; info != nullptr; info = info->ai_next) {
    if (int error = TryBind(*info); error != 0) {
      return absl::UnavailableError(Concat("cannot listen on ", address, ": ", std::generic_category().message(error)));
    }
  }
  return absl::OkStatus();
}

}  // namespace baton
