// SPDX-License-Identifier: Apache-2.0
// Keeps the list of the workers' addresses. A thread of its own reads the workers file and asks DNS at an interval, if
// there is a file or a name.
//
// A file that is missing or wrong, and a name without an answer, count as unchanged. If DNS says that a name has no
// records, the name has no workers. While DNS answers without an address, the address stays for the linger: one short
// answer, or a server that names a part of the addresses at a time, changes nothing. The router itself sees which
// workers live.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/event_fd.h"
#include "common/steady_time.h"
#include "router/discovery/dns_lookup.h"
#include "router/discovery/worker_source.h"

namespace baton::router {

struct DiscoveryOptions {
  std::vector<std::string> workers;  // entries (worker_source.h)
  std::string workers_file;          // more entries; empty: no file
  absl::Duration interval = absl::Seconds(1);
  absl::Duration linger = absl::Seconds(10);
  DnsOptions dns = {};
};

class Discovery {
 public:
  using Addresses = std::vector<std::string>;  // without duplicates
  // Called by Start, and on the thread when the list has changed.
  using OnChange = std::function<void(const Addresses&)>;

  // Reports the addresses that need no DNS before Start returns. INVALID_ARGUMENT or NOT_FOUND: an entry is wrong, or
  // the file is.
  static absl::StatusOr<std::unique_ptr<Discovery>> Start(DiscoveryOptions options, OnChange on_change);
  // Ends the thread; on_change is not called any more.
  ~Discovery();
  Discovery(const Discovery&) = delete;
  Discovery& operator=(const Discovery&) = delete;

 private:
  Discovery(DiscoveryOptions options, OnChange on_change)
      : options_(std::move(options)), on_change_(std::move(on_change)) {}
  absl::Status ReadFile();
  void Run();
  std::vector<WorkerSource> Names() const;  // entries that need DNS
  void LookUpNames();
  void Report();
  // Logs when `source`, an entry or the file, begins to fail, fails in another way, or works again.
  void Note(const std::string& source, const absl::Status& status);

  const DiscoveryOptions options_;
  const OnChange on_change_;
  EventFd stop_;

  // Of the thread, once it runs.
  std::vector<WorkerSource> fixed_;
  std::vector<WorkerSource> of_file_;
  // By entry: each address, and since when DNS answers without the address.
  std::map<std::string, std::map<std::string, std::optional<SteadyTime>>> resolved_;
  std::map<std::string, std::string> errors_;  // that the log has, by source that fails
  Addresses reported_;

  std::thread thread_;
};

}  // namespace baton::router
