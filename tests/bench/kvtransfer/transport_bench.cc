// SPDX-License-Identifier: Apache-2.0
// How fast a transport moves data between two processes of one host: puts by block size and data path, and the round
// trip of a small message.
//
//   transport_bench [seconds per row]

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "common/steady_time.h"
#include "kvtransfer/ucx/ucx_transport.h"

namespace baton {
namespace {

constexpr size_t kRegionBytes = 64 << 20;

class EchoEvents : public TransportEvents {
 public:
  void OnPeerAccepted(PeerId) override {}
  void OnMessage(PeerId peer, std::string_view message) override { on_message(peer, message); }
  void OnPeerState(PeerId, PeerState, const absl::Status&) override {}
  bool AllowWrite(PeerId, StreamId, uint64_t, uint64_t) override { return true; }

  std::function<void(PeerId, std::string_view)> on_message;
};

template <typename T>
T Need(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::exit(1);  // NOLINT(concurrency-mt-unsafe)
}

TransportOptions Options(const std::string& path) {
  TransportOptions options;
  options.path = path;
  options.secret = "benchmark";
  return options;
}

// In a process of its own: tells its address through `out` and serves until it is killed.
[[noreturn]] void Serve(const std::string& path, int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  TransportOptions options = Options(path);
  options.listen_address = "127.0.0.1:0";
  const auto transport = Need(CreateUcxTransport(options));
  const TransportMemory memory = Need(transport->AllocateRegion(kRegionBytes));
  std::memset(memory.data, 0, memory.bytes);
  EchoEvents events;
  events.on_message = [&](PeerId peer, std::string_view message) { transport->Send(peer, std::string(message)); };
  if (!transport->Start(&events).ok()) std::exit(1);  // NOLINT(concurrency-mt-unsafe)
  const std::string address = transport->address();
  if (write(out, address.data(), address.size()) < 0) std::exit(1);  // NOLINT(concurrency-mt-unsafe)
  while (true) pause();
}

void MeasurePuts(Transport& transport, PeerId peer, const TransportMemory& memory, size_t block, double seconds) {
  std::vector<PutPiece> pieces;
  for (size_t at = 0; at < kRegionBytes; at += block) {
    pieces.push_back({.local = static_cast<const std::byte*>(memory.data) + at, .remote_offset = at, .bytes = block});
  }
  const auto put_all = [&] {
    std::promise<absl::Status> flushed;
    transport.Put(peer, 1, pieces);
    transport.Flush(peer, 1, [&](const absl::Status& status) { flushed.set_value(status); });
    return flushed.get_future().get();
  };
  if (!put_all().ok()) return;  // the first touches the pages
  const SteadyTime start = SteadyTime::Now();
  double bytes = 0;
  absl::Duration taken;
  do {
    if (!put_all().ok()) return;
    bytes += static_cast<double>(kRegionBytes);
    taken = SteadyTime::Now() - start;
  } while (absl::ToDoubleSeconds(taken) < seconds);
  std::printf("%-8s put %7zu KiB  %7.2f GB/s\n", transport.PathName(peer).c_str(), block >> 10,
              bytes / absl::ToDoubleSeconds(taken) * 1e-9);
  std::fflush(stdout);
}

void MeasureRoundTrip(Transport& transport, EchoEvents& events, PeerId peer) {
  constexpr int kRounds = 2000;
  std::vector<double> micros;
  std::promise<void> done;
  SteadyTime sent = SteadyTime::Now();
  events.on_message = [&](PeerId, std::string_view) {
    micros.push_back(absl::ToDoubleMicroseconds(SteadyTime::Now() - sent));
    if (micros.size() == kRounds) return done.set_value();
    sent = SteadyTime::Now();
    transport.Send(peer, "ping");
  };
  transport.Send(peer, "ping");
  done.get_future().wait();
  std::sort(micros.begin(), micros.end());
  std::printf("%-8s message round trip  p50 %.1f us  p99 %.1f us\n", transport.PathName(peer).c_str(),
              micros[kRounds / 2], micros[kRounds * 99 / 100]);
  std::fflush(stdout);
}

int Main(double seconds) {
  for (const std::string path : {"tcp", "shm"}) {
    std::array<int, 2> pipe_ends{};
    if (pipe(pipe_ends.data()) != 0) return 1;
    const pid_t server = fork();
    if (server == 0) Serve(path, pipe_ends[1]);
    close(pipe_ends[1]);
    std::array<char, 128> address{};
    if (read(pipe_ends[0], address.data(), address.size() - 1) <= 0) return 1;
    close(pipe_ends[0]);
    {
      EchoEvents events;
      const auto transport = Need(CreateUcxTransport(Options(path)));
      const TransportMemory memory = Need(transport->AllocateRegion(kRegionBytes));
      std::memset(memory.data, 1, memory.bytes);
      if (!transport->Start(&events).ok()) return 1;
      std::promise<absl::StatusOr<PeerId>> connected;
      transport->Connect(address.data(), [&](const absl::StatusOr<PeerId>& peer) { connected.set_value(peer); });
      const PeerId peer = Need(connected.get_future().get());
      for (const size_t block : {8 << 10, 64 << 10, 1 << 20}) MeasurePuts(*transport, peer, memory, block, seconds);
      MeasureRoundTrip(*transport, events, peer);
    }
    kill(server, SIGKILL);
    waitpid(server, nullptr, 0);
  }
  return 0;
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) { return baton::Main(argc > 1 ? std::atof(argv[1]) : 2.0); }
