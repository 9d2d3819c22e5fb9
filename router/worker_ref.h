// SPDX-License-Identifier: Apache-2.0
// The router's names of a worker: one start of one worker process.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>

namespace baton::router {

class WorkerConnection;  // router/worker_connection.h

// A restarted worker keeps its id and has another epoch: the router treats this as a new worker.
struct WorkerKey {
  std::string id;
  uint64_t epoch = 0;
  auto operator<=>(const WorkerKey&) const = default;
};

// Immutable, so thread-safe. `connection` is null only in tests that call no worker.
struct WorkerRef {
  WorkerKey key;
  std::string handoff_address;
  std::shared_ptr<WorkerConnection> connection;
};

}  // namespace baton::router
