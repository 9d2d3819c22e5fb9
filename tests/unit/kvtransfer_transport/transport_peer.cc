// SPDX-License-Identifier: Apache-2.0
// A process at the other end of a transport, for tests that kill, stop and restart it.
//
//   transport_peer serve PATH SECRET [LISTEN]   listens; prints "address HOST:PORT"
//   transport_peer write PATH SECRET HOST:PORT  connects and puts its whole region again and again; prints "flushed"
//
// Both print what happens to their peer, one event per line, and end in order when stdin does.

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kvtransfer/ucx/ucx_transport.h"

namespace baton {
namespace {

constexpr size_t kRegionBytes = 4 << 20;

void Print(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

class PrintingEvents : public TransportEvents {
 public:
  void OnPeerAccepted(PeerId) override { Print("accepted"); }
  void OnMessage(PeerId peer, std::string_view message) override {
    transport->Send(peer, "echo " + std::string(message));
  }
  void OnPeerState(PeerId, PeerState state, const absl::Status& why) override {
    if (state == PeerState::kAlive) Print("alive");
    if (state == PeerState::kSilent) Print("silent");
    if (state == PeerState::kRevoked) Print("revoked " + why.ToString());
  }
  bool AllowWrite(PeerId, StreamId, uint64_t, uint64_t) override { return true; }

  Transport* transport = nullptr;
};

// Puts all of `memory`, and again when that is flushed, until it fails.
void PutForEver(Transport& transport, PeerId peer, const TransportMemory& memory, uint8_t round) {
  std::memset(memory.data, round, memory.bytes);
  const PutPiece all{.local = static_cast<const std::byte*>(memory.data), .remote_offset = 0, .bytes = memory.bytes};
  transport.Put(peer, 1, {&all, 1});
  transport.Flush(peer, 1, [&transport, peer, memory, round](const absl::Status& status) {
    if (!status.ok()) return Print("failed " + status.ToString());
    if (round < 3) Print("flushed");
    PutForEver(transport, peer, memory, round == 250 ? 3 : round + 1);
  });
}

int Main(const std::vector<std::string>& args) {
  if (args.size() < 4) return 2;
  TransportOptions options;
  options.path = args[2];
  options.secret = args[3];
  options.heartbeat_interval = absl::Milliseconds(20);
  if (args[1] == "serve") options.listen_address = args.size() > 4 ? args[4] : "127.0.0.1:0";
  absl::StatusOr<std::unique_ptr<Transport>> transport = CreateUcxTransport(options);
  if (!transport.ok()) return 3;
  absl::StatusOr<TransportMemory> memory = (*transport)->AllocateRegion(kRegionBytes);
  PrintingEvents events;
  events.transport = transport->get();
  if (!memory.ok() || !(*transport)->Start(&events).ok()) return 4;
  Print("address " + (*transport)->address());
  if (args[1] == "write") {
    // The transport may run the callback while `transport` is being destroyed and no longer points to it.
    (*transport)->Connect(args[4], [ends = transport->get(), memory](const absl::StatusOr<PeerId>& peer) {
      Print("connected " + peer.status().ToString());
      if (peer.ok()) PutForEver(*ends, *peer, *memory, 1);
    });
  }
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  transport->reset();
  Print("ended");
  return 0;
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) { return baton::Main({argv, argv + argc}); }
