// SPDX-License-Identifier: Apache-2.0
#include "router/discovery/worker_source.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "common/address.h"
#include "common/status_macros.h"
#include "common/strings.h"

namespace baton::router {
namespace {

constexpr std::string_view kDns = "dns:///";

absl::Status Unexpected(std::string_view entry) {
  return absl::InvalidArgumentError(Concat("\"", entry,
                                           "\" names no worker, expected host:port, dns:///name:port (address records) "
                                           "or dns:///_service._protocol.name (SRV records)"));
}

}  // namespace

absl::StatusOr<WorkerSource> ParseWorkerSource(std::string_view entry) {
  WorkerSource source;
  source.entry = std::string(entry);
  if (!entry.starts_with(kDns)) {
    // "dns:name" and "dns://server/name" are forms of gRPC that Baton does not take.
    const absl::StatusOr<HostPort> address = ParseHostPort(entry);
    if (!address.ok() || address->port == 0 || entry.find('/') != std::string_view::npos) return Unexpected(entry);
    return source;
  }
  const std::string_view name = entry.substr(kDns.size());
  if (name.starts_with('_')) {
    if (name.find_first_of(":/") != std::string_view::npos) return Unexpected(entry);
    source.kind = WorkerSource::Kind::kServiceRecords;
    source.name = std::string(name);
    return source;
  }
  const absl::StatusOr<HostPort> address = ParseHostPort(name);
  if (!address.ok() || address->host.empty() || address->port == 0 || name.find('/') != std::string_view::npos) {
    return Unexpected(entry);
  }
  source.kind = WorkerSource::Kind::kAddressRecords;
  source.name = address->host;
  source.port = address->port;
  return source;
}

absl::StatusOr<std::vector<WorkerSource>> ParseWorkersFile(std::string_view text) {
  std::vector<WorkerSource> sources;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(ToAbsl(text), '\n')) {
    ++number;
    const absl::string_view entry = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (entry.empty()) continue;
    absl::StatusOr<WorkerSource> source = ParseWorkerSource({entry.data(), entry.size()});
    if (!source.ok()) return absl::InvalidArgumentError(Concat("line ", number, ": ", source.status().message()));
    sources.push_back(*std::move(source));
  }
  return sources;
}

}  // namespace baton::router
