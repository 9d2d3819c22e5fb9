// How the router's parts name a worker: one start of one worker process.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>

namespace baton::router {

class WorkerConnection;  // router/worker_connection.h: the channel and the calls on it

// A restarted worker keeps its id and has another epoch: it is a new worker.
struct WorkerKey {
  std::string id;
  uint64_t epoch = 0;
  auto operator<=>(const WorkerKey&) const = default;
};

// Immutable, so thread-safe. Calls go through `connection`, which is null only where nothing is called (tests of
// policy).
struct WorkerRef {
  WorkerKey key;
  std::string handoff_address;
  std::shared_ptr<WorkerConnection> connection;
};

}  // namespace baton::router
