// SPDX-License-Identifier: Apache-2.0
// Which of the network transports that UCX finds on this host carry frames.
//
// A frame must leave at once or not at all (UcxChannel). Two consequences:
//   - A frame fits one message of the transport. RDMA transports have smaller messages than tcp.
//   - RC is taken only if UCX_TLS names a transport of RC. RC connections exchange addresses first, and UCX 1.13 aborts
//     the process if a peer ends meanwhile. DC, UD and tcp need no exchange.
//
// The receiver's CPU copies each frame into place, whatever the transport: the proof of revoked is the same as for tcp.
// RDMA transports were not run on hardware.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton {

// A transport of UCX on one device of this host.
struct NetworkResource {
  std::string transport;         // "tcp", "dc_mlx5", "ud_verbs", ...
  std::string device;            // "eth0", "mlx5_0:1", ...
  size_t max_message_bytes = 0;  // of one active message that UCX copies when it is sent
  bool operator==(const NetworkResource&) const = default;
};

// The limits of the choice.
struct NetworkWish {
  bool tcp_only = false;
  std::string interface = {};                  // the network interface that alone carries the data; empty: all
  std::vector<std::string> rdma_devices = {};  // RDMA devices of `interface`, without port: "mlx5_0"
  std::string user_transports = {};            // UCX_TLS; empty: not set
  std::string user_devices = {};               // UCX_NET_DEVICES; empty: not set
};

struct NetworkChoice {
  std::vector<NetworkResource> resources;  // at least one
  std::string transports;                  // for UCX_TLS
  std::string devices;                     // for UCX_NET_DEVICES
  size_t max_payload_bytes = 0;            // of a frame: fits every resource
  std::string ToString() const;            // "tcp on eth0, dc_mlx5 on mlx5_0:1"
};

// Pure. FAILED_PRECONDITION says what was found and what was asked for, if nothing fits.
absl::StatusOr<NetworkChoice> ChooseNetwork(const std::vector<NetworkResource>& found, const NetworkWish& wish);

// Asks UCX for the network transports of this host. Takes milliseconds.
absl::StatusOr<std::vector<NetworkResource>> FindNetworkResources();

// Names of the RDMA devices behind a network interface, from /sys.
std::vector<std::string> RdmaDevicesOf(const std::string& interface);

// Size of tcp's messages in UCX: larger frames are faster.
inline constexpr char kTcpSegment[] = "256k";

}  // namespace baton
