// SPDX-License-Identifier: Apache-2.0
// Measures handoffs between two processes of one host, from Reserve to Committed, against the bare puts of the same
// pages. Handoffs run alone and four at a time, with neighbouring pages and with scattered pages.
//
//   handoff_bench [rounds]
//
// The KV is that of 2048 tokens of a model with 22 layers and 4 KV heads of 64, in BF16: 128 pages of 16 tokens, 46 MB.

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "common/steady_time.h"
#include "engine/kv/page_pool.h"
#include "kvtransfer/endpoints/endpoints.h"
#include "kvtransfer/ucx/ucx_transport.h"
#include "worker/admission/capacity_ledger.h"
#include "worker/admission/reservations.h"

namespace baton {
namespace {

const KvLayout kLayout(22, {.kv_heads = 4, .head_dim = 64, .page_tokens = 16, .dtype = KvType::kBF16});
constexpr int kTokens = 2048;
constexpr int kPages = kTokens / 16;
constexpr int kAtOnce = 4;
constexpr uint32_t kPoolPages = 2 * kAtOnce * (kPages + 1);
constexpr int kOpen = 2 * kAtOnce;  // attempts that a writer may reserve for
const std::string kNumerics = "the bench's";

template <typename T>
T Need(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::exit(1);  // NOLINT(concurrency-mt-unsafe)
}

TransportOptions Options(const std::string& path, const std::string& listen = "") {
  TransportOptions options;
  options.path = path;
  options.secret = "benchmark";
  options.listen_address = listen;
  return options;
}

AttemptKey Key(int handoff) { return {.request = {7, static_cast<uint64_t>(handoff)}, .attempt = 1}; }

// A pool whose memory was touched, and of which every second page is taken if `scattered`.
struct Pool {
  Pool(Transport& transport, bool scattered) {
    pool = Need(PagePool::Create(kLayout, kPoolPages, [&](size_t bytes) -> absl::StatusOr<PoolMemory> {
      const TransportMemory memory = Need(transport.AllocateRegion(bytes));
      std::memset(memory.data, 1, memory.bytes);
      return PoolMemory{memory.data, nullptr};
    }));
    if (!scattered) return;
    std::vector<PageRef> all = Need(pool->Allocate(kPoolPages));
    for (size_t i = 0; i < all.size(); i += 2) taken.push_back(std::move(all[i]));
  }
  std::unique_ptr<PagePool> pool;
  std::vector<PageRef> taken;  // goes before the pool
};

// In a process of its own: takes whatever is handed over, and tells its address through `out`.
[[noreturn]] void Receive(const std::string& path, bool scattered, int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto transport = Need(CreateUcxTransport(Options(path, "127.0.0.1:0")));
  const Pool pool(*transport, scattered);
  CapacityLedger ledger(pool.pool.get(), {});
  Reservations reservations(&ledger);
  HandoffReceiver* ready = nullptr;
  int next = 0;  // changed on the I/O thread once that has a peer
  const auto endpoints =
      Need(HandoffEndpoints::Create({"decode", 1, kNumerics}, {}, transport.get(), pool.pool.get(), &reservations,
                                    {.on_received =
                                         [&](const ReceivedSequence& received) {
                                           ready->CloseAttempt(received.key);
                                           (void)ready->OpenAttempt(Key(next++), absl::Now());
                                         },
                                     .on_failed = [](const AttemptKey&, const Outcome&) { std::abort(); }}));
  ready = &endpoints->receiver();
  ledger.SetHooks({.on_local = nullptr, .on_reservation = [&] { ready->Poke(); }});
  pool.pool->set_on_free([&] { ledger.OnPagesFree(); });
  while (next < kOpen) (void)ready->OpenAttempt(Key(next++), absl::Now());
  const std::string address = transport->address();
  if (write(out, address.data(), address.size()) < 0) std::exit(1);  // NOLINT(concurrency-mt-unsafe)
  while (true) pause();
}

// The same without the protocol: a region that may be written to.
[[noreturn]] void BeWritten(const std::string& path, int out) {
  class Events : public TransportEvents {
   public:
    void OnPeerAccepted(PeerId) override {}
    void OnMessage(PeerId, std::string_view) override {}
    void OnPeerState(PeerId, PeerState, const absl::Status&) override {}
    bool AllowWrite(PeerId, StreamId, uint64_t, uint64_t) override { return true; }
  };
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto transport = Need(CreateUcxTransport(Options(path, "127.0.0.1:0")));
  const TransportMemory memory = Need(transport->AllocateRegion(kPoolPages * kLayout.page_bytes()));
  std::memset(memory.data, 0, memory.bytes);
  Events events;
  if (!transport->Start(&events).ok()) std::exit(1);  // NOLINT(concurrency-mt-unsafe)
  const std::string address = transport->address();
  if (write(out, address.data(), address.size()) < 0) std::exit(1);  // NOLINT(concurrency-mt-unsafe)
  while (true) pause();
}

class Child {
 public:
  explicit Child(const std::function<void(int out)>& main) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) std::exit(1);  // NOLINT(concurrency-mt-unsafe)
    process_ = fork();
    if (process_ == 0) main(ends[1]);
    close(ends[1]);
    std::array<char, 128> text{};
    if (read(ends[0], text.data(), text.size() - 1) <= 0) std::exit(1);  // NOLINT(concurrency-mt-unsafe)
    close(ends[0]);
    address_ = text.data();
  }
  ~Child() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  const std::string& address() const { return address_; }

 private:
  pid_t process_ = 0;
  std::string address_;
};

class Puts {
 public:
  Puts(const std::string& path, const std::string& address, bool scattered)
      : transport_(Need(CreateUcxTransport(Options(path)))), pool_(*transport_, scattered) {
    if (!transport_->Start(&events_).ok()) std::exit(1);  // NOLINT(concurrency-mt-unsafe)
    std::promise<absl::StatusOr<PeerId>> connected;
    transport_->Connect(address, [&](const absl::StatusOr<PeerId>& peer) { connected.set_value(peer); });
    peer_ = Need(connected.get_future().get());
    pages_ = Need(pool_.pool->Allocate(kPages));
    const uint32_t step = scattered ? 2 : 1;
    for (uint32_t page = step - 1; page < kPoolPages; page += step) destinations_.push_back(PageId{page});
  }
  // To other pages each time, as handoffs are granted.
  double Seconds() {
    const SteadyTime start = SteadyTime::Now();
    for (int layer = 0; layer < kLayout.layers(); ++layer) {
      std::vector<PutPiece> pieces;
      for (int i = 0; i < kPages; ++i) {
        const PageId to = destinations_[(next_ + i) % destinations_.size()];
        pieces.push_back({.local = pool_.pool->block(layer, pages_[i].id()),
                          .remote_offset = kLayout.block_offset(layer, to, kPoolPages),
                          .bytes = kLayout.block_stride()});
      }
      transport_->Put(peer_, 1, pieces);
    }
    next_ += kPages;
    std::promise<absl::Status> flushed;
    transport_->Flush(peer_, 1, [&](const absl::Status& status) { flushed.set_value(status); });
    if (!flushed.get_future().get().ok()) std::exit(1);  // NOLINT(concurrency-mt-unsafe)
    return absl::ToDoubleSeconds(SteadyTime::Now() - start);
  }

 private:
  class Events : public TransportEvents {
   public:
    void OnPeerAccepted(PeerId) override {}
    void OnMessage(PeerId, std::string_view) override {}
    void OnPeerState(PeerId, PeerState, const absl::Status&) override {}
    bool AllowWrite(PeerId, StreamId, uint64_t, uint64_t) override { return false; }
  };
  Events events_;
  const std::unique_ptr<Transport> transport_;
  Pool pool_;
  PeerId peer_{};
  std::vector<PageRef> pages_;
  std::vector<PageId> destinations_;
  size_t next_ = 0;
};

class Handoffs {
 public:
  Handoffs(const std::string& path, const std::string& address, bool scattered)
      : target_{"decode", 1, address},
        transport_(Need(CreateUcxTransport(Options(path)))),
        pool_(*transport_, scattered) {
    sender_ = Need(HandoffSender::Create({"prefill", 1, kNumerics}, transport_.get(), pool_.pool.get()));
    for (int i = 0; i < kAtOnce; ++i) {
      refs_.push_back(Need(pool_.pool->Allocate(kPages)));
      for (const PageRef& page : refs_.back()) pages_[i].push_back(page.id());
    }
  }
  ~Handoffs() { transport_.reset(); }

  // How long each of `count` at once takes, from Reserve to Committed.
  std::vector<double> Seconds(int count) {
    std::vector<std::promise<void>> done(count);
    std::vector<double> seconds(count);
    const SteadyTime start = SteadyTime::Now();
    for (int i = 0; i < count; ++i) {
      const AttemptKey key = Key(next_++);
      sender_->Reserve(
          key, target_, kTokens, {},
          {.on_queued = [] {},
           .on_granted =
               [this, key, i] {
                 for (int layer = 0; layer < kLayout.layers(); ++layer) {
                   sender_->PutLayer(key, layer, 0, pages_[i]);
                 }
                 sender_->Commit(key, {0});
               },
           .on_flushed = [] {},
           .on_failed = [](const Outcome& why) { Need(absl::StatusOr<int>(absl::InternalError(why.ToString()))); },
           .on_done =
               [&, i](const HandoffStats& stats) {
                 path_ = stats.transport;
                 seconds[i] = absl::ToDoubleSeconds(SteadyTime::Now() - start);
                 done[i].set_value();
               }});
    }
    for (std::promise<void>& one : done) one.get_future().wait();
    return seconds;
  }
  const std::string& path() const { return path_; }

 private:
  const HandoffTarget target_;
  std::unique_ptr<HandoffSender> sender_;
  std::unique_ptr<Transport> transport_;
  Pool pool_;
  std::vector<std::vector<PageRef>> refs_;
  std::array<std::vector<PageId>, kAtOnce> pages_;
  std::string path_;
  int next_ = 0;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int Main(int rounds) {
  const double bytes = static_cast<double>(kPages * kLayout.page_bytes());
  std::printf("%.1f MB; ms, medians of %d rounds\n", bytes * 1e-6, rounds);
  std::printf("%-8s %-10s %8s %8s %6s   %s\n", "path", "pages", "puts", "handoff", "share",
              "4 at once: first, last, share of the puts of all");
  for (const std::string path : {"tcp", "shm"}) {
    for (const bool scattered : {false, true}) {
      const Child receiver([&](int out) { Receive(path, scattered, out); });
      const Child written([&](int out) { BeWritten(path, out); });
      Puts puts(path, written.address(), scattered);
      Handoffs handoffs(path, receiver.address(), scattered);
      std::vector<double> put;
      std::vector<double> alone;
      std::vector<double> first;
      std::vector<double> last;
      for (int round = 0; round <= rounds; ++round) {
        const double put_seconds = puts.Seconds();
        const double alone_seconds = handoffs.Seconds(1)[0];
        const std::vector<double> together = handoffs.Seconds(kAtOnce);
        if (round == 0) continue;  // connects
        put.push_back(put_seconds * 1e3);
        alone.push_back(alone_seconds * 1e3);
        first.push_back(*std::min_element(together.begin(), together.end()) * 1e3);
        last.push_back(*std::max_element(together.begin(), together.end()) * 1e3);
      }
      std::printf("%-8s %-10s %8.1f %8.1f %5.0f%%   %.1f, %.1f, %.0f%%\n", handoffs.path().c_str(),
                  scattered ? "scattered" : "in a row", Median(put), Median(alone), 100 * Median(put) / Median(alone),
                  Median(first), Median(last), 100 * kAtOnce * Median(put) / Median(last));
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) { return baton::Main(argc > 1 ? std::atoi(argv[1]) : 15); }
