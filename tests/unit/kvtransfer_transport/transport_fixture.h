// SPDX-License-Identifier: Apache-2.0
// A transport test has two nodes in one process and runs over each transport.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kvtransfer/ucx/ucx_transport.h"
#include "recording_events.h"
#include "tests/inproc/inproc_transport.h"
#include "tests/status_matchers.h"

namespace baton {

inline constexpr size_t kRegionBytes = 8 << 20;

struct Kind {
  const char* name;
  const char* kind;
  const char* path;
  const char* listen;
  const char* nobody;  // an address where nobody listens
  const char* path_name;
};

inline void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

// A transport with a region and its events.
struct Node {
  testing::RecordingEvents events;
  std::byte* region = nullptr;
  std::unique_ptr<Transport> transport;  // ends first
};

class TransportTest : public ::testing::TestWithParam<Kind> {
 protected:
  TransportOptions Options() {
    TransportOptions options;
    options.path = GetParam().path;
    options.secret = "a secret of the test";
    options.heartbeat_interval = absl::Milliseconds(20);
    options.max_message_bytes = 1 << 20;
    options.prefault = true;
    return options;
  }
  TransportOptions ListenOptions() {
    TransportOptions options = Options();
    options.listen_address = GetParam().listen;
    return options;
  }
  static absl::StatusOr<std::unique_ptr<Transport>> Create(const TransportOptions& options) {
    if (std::string(GetParam().kind) == "inproc") return InprocTransport::Create(options);
    return CreateUcxTransport(options);
  }
  static std::unique_ptr<Node> Make(const TransportOptions& options, bool with_region = true) {
    auto node = std::make_unique<Node>();
    absl::StatusOr<std::unique_ptr<Transport>> transport = Create(options);
    EXPECT_OK(transport);
    node->transport = *std::move(transport);
    if (with_region) {
      const absl::StatusOr<TransportMemory> memory = node->transport->AllocateRegion(kRegionBytes);
      EXPECT_OK(memory);
      node->region = static_cast<std::byte*>(memory->data);
      std::memset(node->region, 0, kRegionBytes);
    }
    EXPECT_OK(node->transport->Start(&node->events));
    return node;
  }

  // Two connected nodes: `client_` put to `server_`.
  void Connect() {
    server_ = Make(ListenOptions());
    client_ = Make(Options());
    ASSERT_OK_AND_ASSIGN(to_server_, testing::ConnectAndWait(*client_->transport, server_->transport->address()));
    ASSERT_TRUE(server_->events.WaitForAccepted(1));
    to_client_ = server_->events.accepted()[0];
  }

  bool ReceiverWrites() const { return std::string(GetParam().path_name) != "ucx:shm"; }

  std::unique_ptr<Node> server_;
  std::unique_ptr<Node> client_;
  PeerId to_server_{};
  PeerId to_client_{};
};

inline std::vector<std::byte> RandomBytes(size_t count, uint32_t seed) {
  std::vector<std::byte> bytes(count);
  std::mt19937 random(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

}  // namespace baton
