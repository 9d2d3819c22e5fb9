// SPDX-License-Identifier: Apache-2.0
// Asks DNS where workers are, by c-ares: /etc/resolv.conf with its search domains, and /etc/hosts.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/event_fd.h"
#include "router/discovery/worker_source.h"

namespace baton::router {

struct DnsOptions {
  std::string servers;  // "address[:port]", separated by commas; empty: those of /etc/resolv.conf
  absl::Duration timeout = absl::Seconds(2);
};

// The "address:port" of each worker, in order. NOT_FOUND: DNS says that the name has no such record. UNAVAILABLE: no
// server gave an answer in time, or `stop` was signalled.
using DnsAnswer = absl::StatusOr<std::vector<std::string>>;

// INVALID_ARGUMENT if `servers` names no servers. Asks nobody.
absl::Status CheckDnsOptions(const DnsOptions& options);

// Looks up all `sources`, none of which is an address, side by side. Blocks up to the timeout. Thread-safe.
std::vector<DnsAnswer> LookUp(std::span<const WorkerSource> sources, const DnsOptions& options, const EventFd& stop);

}  // namespace baton::router
