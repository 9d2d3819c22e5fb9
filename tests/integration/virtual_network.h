// SPDX-License-Identifier: Apache-2.0
// A virtual network. Every node is a network namespace with one TUN device. All packets go through this process, which
// delays, loses or drops packets. A cut node hears nothing, as if a cable were pulled.
//
// Thread-safe once created. Create needs root and /dev/net/tun. PERMISSION_DENIED: no root. NOT_FOUND: no /dev/net/tun.
// UNAVAILABLE: no packet passes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace baton::testing {

// Puts the calling process, a child before exec, into a node's network. Makes system calls only.
bool EnterNetwork(int namespace_fd);

class VirtualNetwork {
 public:
  // The first node is the calling thread and every thread that this thread starts later. Call Create on the main
  // thread, before any connection.
  static absl::StatusOr<std::unique_ptr<VirtualNetwork>> Create(std::vector<std::string> nodes);
  ~VirtualNetwork();

  const std::vector<std::string>& nodes() const;
  std::string address(const std::string& node) const;  // without a port
  // For ProcessSpec: the process sees only the node's device.
  int namespace_fd(const std::string& node) const;

  // Drops all packets from `from` to `to`.
  void Cut(const std::string& from, const std::string& to);
  void Restore(const std::string& from, const std::string& to);
  // Delays every packet between two nodes.
  void SetDelay(absl::Duration delay);
  void SetLoss(double share);
  // Ends all cuts, delays and losses.
  void Heal();

  struct Counts {
    uint64_t delivered = 0;
    uint64_t dropped = 0;  // by cuts and losses
  };
  Counts counts() const;

 private:
  class Switch;
  explicit VirtualNetwork(std::unique_ptr<Switch> network);
  // Connects from a process in the second node to the first node.
  absl::Status Try() const;
  std::unique_ptr<Switch> switch_;
};

}  // namespace baton::testing
