// A network of the test's own: every node is a network namespace with one device, a TUN, whose packets go through this
// process, which delays, loses or drops them. What is cut off hears nothing, as if a cable were pulled.
//
// Needs root and /dev/net/tun: Create says PERMISSION_DENIED or NOT_FOUND otherwise, and UNAVAILABLE where all that can
// be had but no packet passes. Thread-safe once created.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace baton::testing {

// Puts the calling process, a child that is about to become another program, into a node's network. System calls only.
bool EnterNetwork(int namespace_fd);

class VirtualNetwork {
 public:
  // The first node is the calling thread, and every thread that it starts from now on: call it from main's thread,
  // before anything opens a connection.
  static absl::StatusOr<std::unique_ptr<VirtualNetwork>> Create(std::vector<std::string> nodes);
  ~VirtualNetwork();

  const std::vector<std::string>& nodes() const;
  std::string address(const std::string& node) const;  // without a port
  // For ProcessSpec: a process started there sees that node's device alone.
  int namespace_fd(const std::string& node) const;

  // From now on nothing that `from` sends arrives at `to`.
  void Cut(const std::string& from, const std::string& to);
  void Restore(const std::string& from, const std::string& to);
  // Of every packet between two nodes.
  void SetDelay(absl::Duration delay);
  void SetLoss(double share);
  // Undoes all of the above.
  void Heal();

  struct Counts {
    uint64_t delivered = 0;
    uint64_t dropped = 0;  // cut off or lost
  };
  Counts counts() const;

 private:
  class Switch;
  explicit VirtualNetwork(std::unique_ptr<Switch> network);
  // Connects from a process in the second node to the first.
  absl::Status Try() const;
  std::unique_ptr<Switch> switch_;
};

}  // namespace baton::testing
