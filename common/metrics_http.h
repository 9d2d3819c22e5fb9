// SPDX-License-Identifier: Apache-2.0
// An HTTP server with one page: GET and HEAD of /metrics.
//
// One thread of its own serves at most 16 connections at a time, one request each, and gives a client 5 s for it.
// Further clients wait in the kernel's backlog.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/address.h"

namespace baton {

class MetricsHttp {
 public:
  using Page = std::function<std::string()>;

  // Calls `page` on the server's thread, once per request. UNAVAILABLE says why `address` cannot be listened on.
  static absl::StatusOr<std::unique_ptr<MetricsHttp>> Start(const HostPort& address, Page page);
  // Drops open connections. Waits for a call of `page`, and for nothing else.
  ~MetricsHttp();

  int port() const;

 private:
  class Server;
  explicit MetricsHttp(std::unique_ptr<Server> server);

  const std::unique_ptr<Server> server_;
};

}  // namespace baton
