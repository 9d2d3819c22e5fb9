// SPDX-License-Identifier: Apache-2.0
#include "router/discovery/dns_lookup.h"

#include <ares.h>
#include <arpa/nameser.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "common/status_macros.h"
#include "common/steady_time.h"
#include "common/strings.h"

namespace baton::router {
namespace {

constexpr int kQueryTimeoutMs = 500;  // then c-ares asks again
constexpr int kTries = 3;

// c-ares keeps its tables for the process. Never cleaned up: gRPC uses the library, too.
absl::Status InitLibrary() {
  static const int code = ares_library_init(ARES_LIB_INIT_ALL);
  return code == ARES_SUCCESS ? absl::OkStatus() : absl::InternalError(Concat("c-ares: ", ares_strerror(code)));
}

absl::Status ToStatus(std::string_view name, int code) {
  const std::string text = Concat(name, ": ", ares_strerror(code));
  return code == ARES_ENOTFOUND || code == ARES_ENODATA ? absl::NotFoundError(text) : absl::UnavailableError(text);
}

std::string Format(const sockaddr& address, int port) {
  char text[INET6_ADDRSTRLEN] = {};
  const void* const bytes = address.sa_family == AF_INET6
                                ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr)
                                : &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  ares_inet_ntop(address.sa_family, bytes, text, sizeof(text));
  return address.sa_family == AF_INET6 ? Concat("[", text, "]:", port) : Concat(text, ":", port);
}

// One round of queries. c-ares calls back on the thread that runs Wait.
class Round {
 public:
  explicit Round(ares_channel channel) : channel_(channel) {}

  void Start(const WorkerSource& source, DnsAnswer& answer) {
    answer = std::vector<std::string>();
    if (source.kind == WorkerSource::Kind::kAddressRecords) {
      return AskAddresses({this, source.name, source.port, AF_INET, &answer});
    }
    Query& query = Add({this, source.name, 0, AF_UNSPEC, &answer});
    ares_search(channel_, query.name.c_str(), ns_c_in, ns_t_srv, OnServices, &query);
  }

  // Runs until all queries have ended, `deadline` has passed or `stop` is signalled.
  void Wait(SteadyTime deadline, const EventFd& stop) {
    while (pending_ > 0) {
      const absl::Duration left = deadline - SteadyTime::Now();
      if (left <= absl::ZeroDuration() || !Process(left, stop)) return ares_cancel(channel_);
    }
  }

 private:
  struct Query {
    Round* round;
    std::string name;
    int port;
    int family;
    DnsAnswer* answer;
    bool is_target = false;  // of an SRV record
  };

  Query& Add(Query query) {
    ++pending_;
    return queries_.emplace_back(std::move(query));
  }

  void AskAddresses(Query asked) {
    Query& query = Add(std::move(asked));
    ares_addrinfo_hints hints = {};
    hints.ai_family = query.family;
    hints.ai_flags = ARES_AI_NOSORT;  // LookUp sorts
    hints.ai_socktype = SOCK_STREAM;
    ares_getaddrinfo(channel_, query.name.c_str(), nullptr, &hints, OnAddresses, &query);
  }

  static void OnAddresses(void* arg, int code, int /*timeouts*/, ares_addrinfo* found) {
    Query& query = *static_cast<Query*>(arg);
    const std::unique_ptr<ares_addrinfo, decltype(&ares_freeaddrinfo)> owned(found, ares_freeaddrinfo);
    --query.round->pending_;
    const bool has_none =
        code == ARES_ENODATA || code == ARES_ENOTFOUND;  // also for a name of /etc/hosts with AAAA only
    if (has_none && query.family == AF_INET) {
      return query.round->AskAddresses({query.round, query.name, query.port, AF_INET6, query.answer, query.is_target});
    }
    if (query.is_target && has_none) return;  // the target is no worker yet
    if (code != ARES_SUCCESS) return Fail(query, code);
    for (const ares_addrinfo_node* node = found->nodes; node != nullptr && query.answer->ok(); node = node->ai_next) {
      (*query.answer)->push_back(Format(*node->ai_addr, query.port));
    }
  }

  static void OnServices(void* arg, int code, int /*timeouts*/, unsigned char* bytes, int size) {
    Query& query = *static_cast<Query*>(arg);
    --query.round->pending_;
    ares_srv_reply* replies = nullptr;
    if (code == ARES_SUCCESS) code = ares_parse_srv_reply(bytes, size, &replies);
    const std::unique_ptr<ares_srv_reply, decltype(&ares_free_data)> owned(replies, ares_free_data);
    if (code != ARES_SUCCESS) return Fail(query, code);
    for (const ares_srv_reply* reply = replies; reply != nullptr; reply = reply->next) {
      query.round->AskAddresses({query.round, reply->host, reply->port, AF_INET, query.answer, /*is_target=*/true});
    }
  }

  // One target of an SRV record without an answer makes the whole answer uncertain.
  static void Fail(const Query& query, int code) {
    *query.answer = code == ARES_ECANCELLED ? absl::UnavailableError(Concat(query.name, ": no server answered in time"))
                                            : ToStatus(query.name, code);
  }

  // Waits for a packet or a timeout of c-ares; false if `stop` is signalled.
  bool Process(absl::Duration left, const EventFd& stop) {
    ares_socket_t sockets[ARES_GETSOCK_MAXNUM];
    const int wanted = ares_getsock(channel_, sockets, ARES_GETSOCK_MAXNUM);
    std::vector<pollfd> polled = {{.fd = stop.fd(), .events = POLLIN, .revents = 0}};
    for (int i = 0; i < ARES_GETSOCK_MAXNUM; ++i) {
      const int events =
          (ARES_GETSOCK_READABLE(wanted, i) ? POLLIN : 0) | (ARES_GETSOCK_WRITABLE(wanted, i) ? POLLOUT : 0);
      if (events != 0) polled.push_back({.fd = sockets[i], .events = static_cast<short>(events), .revents = 0});
    }
    timeval limit = absl::ToTimeval(left);
    timeval next = {};
    const absl::Duration wait = absl::DurationFromTimeval(*ares_timeout(channel_, &limit, &next));
    poll(polled.data(), polled.size(), static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1);
    if (polled.front().revents != 0) return false;
    for (const pollfd& socket : std::span(polled).subspan(1)) {
      ares_process_fd(channel_, (socket.revents & ~POLLOUT) != 0 ? socket.fd : ARES_SOCKET_BAD,
                      (socket.revents & POLLOUT) != 0 ? socket.fd : ARES_SOCKET_BAD);
    }
    ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);  // the timeouts
    return true;
  }

  const ares_channel channel_;
  std::deque<Query> queries_;  // c-ares has pointers to the elements
  int pending_ = 0;
};

absl::StatusOr<std::unique_ptr<ares_channeldata, decltype(&ares_destroy)>> MakeChannel(const DnsOptions& options) {
  BATON_RETURN_IF_ERROR(InitLibrary());
  ares_options settings = {};
  settings.timeout = kQueryTimeoutMs;
  settings.tries = kTries;
  ares_channel channel = nullptr;
  if (int code = ares_init_options(&channel, &settings, ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES); code != ARES_SUCCESS) {
    return absl::UnavailableError(Concat("c-ares cannot start: ", ares_strerror(code)));
  }
  std::unique_ptr<ares_channeldata, decltype(&ares_destroy)> owned(channel, ares_destroy);
  if (options.servers.empty()) return owned;
  if (int code = ares_set_servers_ports_csv(channel, options.servers.c_str()); code != ARES_SUCCESS) {
    return absl::InvalidArgumentError(
        Concat(options.servers, ": ", ares_strerror(code), "; expected IP addresses, each with or without :port"));
  }
  return owned;
}

}  // namespace

absl::Status CheckDnsOptions(const DnsOptions& options) { return MakeChannel(options).status(); }

// The channel is made anew each time: a change of /etc/resolv.conf counts at once.
std::vector<DnsAnswer> LookUp(std::span<const WorkerSource> sources, const DnsOptions& options, const EventFd& stop) {
  const auto channel = MakeChannel(options);
  if (!channel.ok()) return std::vector<DnsAnswer>(sources.size(), channel.status());
  std::vector<DnsAnswer> answers(sources.size());
  Round round(channel->get());
  for (size_t i = 0; i < sources.size(); ++i) round.Start(sources[i], answers[i]);
  round.Wait(SteadyTime::Now() + options.timeout, stop);
  for (DnsAnswer& answer : answers) {
    if (answer.ok()) std::ranges::sort(*answer);
  }
  return answers;
}

}  // namespace baton::router
