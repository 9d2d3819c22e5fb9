// SPDX-License-Identifier: Apache-2.0
// A prefill and a decode worker reduced to their endpoints, in one process, for tests.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "common/steady_time.h"
#include "engine/kv/page_pool.h"
#include "kvtransfer/endpoints/endpoints.h"
#include "tests/inproc/inproc_transport.h"
#include "worker/admission/capacity_ledger.h"
#include "worker/admission/reservations.h"

namespace baton::handoff_test {

inline const KvLayout kLayout(2, {.kv_heads = 1, .head_dim = 4, .page_tokens = 4, .dtype = KvType::kF32});
constexpr absl::Duration kPatience = absl::Seconds(20);

inline AttemptKey Key(uint64_t request, uint32_t attempt = 1) { return {.request = {0, request}, .attempt = attempt}; }

// For what nobody tells us about, such as page counts.
template <typename Condition>
bool Eventually(const Condition& condition) {
  const SteadyTime deadline = SteadyTime::Now() + kPatience;
  while (!condition()) {
    if (SteadyTime::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

// A list of events in order. Thread-safe.
class Diary {
 public:
  void Write(std::string entry) {
    MutexLock lock(mutex_);
    entries_.push_back(std::move(entry));
    changed_.NotifyAll();
  }
  // Until an entry begins with one of `texts` (and a number in it is all of the number); "" if none does in time.
  std::string WaitForAny(const std::vector<std::string>& texts) {
    const SteadyTime deadline = SteadyTime::Now() + kPatience;
    MutexLock lock(mutex_);
    size_t read = 0;
    while (true) {
      for (; read < entries_.size(); ++read) {
        for (const std::string& text : texts) {
          if (Begins(entries_[read], text)) return entries_[read];
        }
      }
      if (!changed_.WaitUntil(mutex_, deadline)) return "";
    }
  }
  std::string WaitFor(const std::string& text) { return WaitForAny({text}); }
  int Count(const std::string& text) {
    MutexLock lock(mutex_);
    int count = 0;
    for (const std::string& entry : entries_) count += Begins(entry, text) ? 1 : 0;
    return count;
  }

 private:
  static bool Begins(const std::string& entry, const std::string& text) {
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    if (entry.compare(0, text.size(), text) != 0) return false;
    return entry.size() == text.size() || !digit(text.back()) || !digit(entry[text.size()]);
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> entries_ ABSL_GUARDED_BY(mutex_);
};

inline TransportOptions Options() {
  TransportOptions options;
  options.listen_address = "inproc:";
  options.secret = "secret";
  options.heartbeat_interval = absl::Milliseconds(20);
  options.silent_after = absl::Milliseconds(200);
  options.peer_timeout = absl::Seconds(60);  // a test that wants it shortens it
  options.connect_timeout = absl::Seconds(5);
  return options;
}

inline std::unique_ptr<PagePool> MakePool(Transport* transport, uint32_t pages) {
  auto allocator = [transport](size_t bytes) -> absl::StatusOr<PoolMemory> {
    absl::StatusOr<TransportMemory> memory = transport->AllocateRegion(bytes);
    if (!memory.ok()) return memory.status();
    return PoolMemory{memory->data, nullptr};
  };
  return *PagePool::Create(kLayout, pages, allocator);
}

// The byte that layer `layer` of page `page` of a request's prompt is filled with.
inline uint8_t Fill(const AttemptKey& key, int layer, int page) {
  return uint8_t(key.request.low * 31 + uint64_t(key.attempt) * 17 + uint64_t(layer) * 7 + uint64_t(page) * 3 + 1);
}

class DecodeSide {
 public:
  struct Settings {
    uint32_t pages = 16;
    HandoffIdentity identity{.worker_id = "decode", .epoch = 1, .numerics_id = "numerics"};
    ReceiverOptions options{};
    CapacityLedger::Limits capacity{};
    TransportOptions transport = Options();
  };

  explicit DecodeSide(Settings settings) : identity_(settings.identity) {
    transport_ = *InprocTransport::Create(settings.transport);
    pool_ = MakePool(transport_.get(), settings.pages);
    ledger_ = std::make_unique<CapacityLedger>(pool_.get(), settings.capacity);
    reservations_ = std::make_unique<Reservations>(ledger_.get());
    endpoints_ = *HandoffEndpoints::Create(
        settings.identity, settings.options, transport_.get(), pool_.get(), reservations_.get(),
        {.on_received = [this](ReceivedSequence sequence) { Take(std::move(sequence)); },
         .on_failed =
             [this](AttemptKey key, const Outcome& why) {
               diary_.Write(absl::StrCat("failed ", key.request.low, ": ", why.ToString()));
             }});
    ledger_->SetHooks({.on_local = [this] { diary_.Write("local wakes"); },
                       .on_reservation = [receiver = &receiver()] { receiver->Poke(); }});
    pool_->set_on_free([ledger = ledger_.get()] { ledger->OnPagesFree(); });
  }
  ~DecodeSide() {
    transport_.reset();
    ledger_->SetHooks({});
    pool_->set_on_free(nullptr);
    MutexLock lock(mutex_);
    running_.clear();
  }

  HandoffTarget target() const { return {identity_.worker_id, identity_.epoch, transport_->address()}; }
  HandoffReceiver& receiver() { return endpoints_->receiver(); }
  CapacityLedger& ledger() { return *ledger_; }
  InprocTransport& transport() { return *transport_; }
  PagePool& pool() { return *pool_; }
  Diary& diary() { return diary_; }

  // The router cancels the attempt, or its sequence ends.
  void Close(const AttemptKey& key) {
    std::optional<ReceivedSequence> ended;
    {
      MutexLock lock(mutex_);
      closed_.insert(key);
      if (const auto it = running_.find(key); it != running_.end()) {
        ended = std::move(it->second);
        running_.erase(it);
      }
    }
    ended.reset();
    receiver().CloseAttempt(key);
  }

  bool IsEmpty() {
    const HandoffReceiver::Load load = receiver().load();
    const PageCounts counts = pool_->counts();
    return load.queued == 0 && load.granted == 0 && load.revoking == 0 && load.received == 0 &&
           ledger_->counts().slots_used == 0 && counts.available() == counts.total;
  }

 private:
  void Take(ReceivedSequence sequence) {
    bool right = sequence.pages.size() == size_t(kLayout.pages_for(sequence.tokens)) + 1;
    for (int layer = 0; layer < kLayout.layers(); ++layer) {
      for (size_t page = 0; page + 1 < sequence.pages.size(); ++page) {
        const std::byte* block = pool_->block(layer, sequence.pages[page].id());
        for (size_t i = 0; i < kLayout.block_stride(); ++i) {
          right = right && block[i] == std::byte{Fill(sequence.key, layer, int(page))};
        }
      }
    }
    const std::string entry = absl::StrCat(right ? "received " : "corrupt ", sequence.key.request.low);
    {
      MutexLock lock(mutex_);
      // One closed meanwhile is dropped, its pages with it, after the lock.
      if (!closed_.contains(sequence.key)) running_.emplace(sequence.key, std::move(sequence));
    }
    diary_.Write(entry);
  }

  const HandoffIdentity identity_;
  Diary diary_;
  std::unique_ptr<PagePool> pool_;
  std::unique_ptr<CapacityLedger> ledger_;
  std::unique_ptr<Reservations> reservations_;
  std::unique_ptr<HandoffEndpoints> endpoints_;
  std::unique_ptr<InprocTransport> transport_;
  Mutex mutex_;
  std::map<AttemptKey, ReceivedSequence> running_ ABSL_GUARDED_BY(mutex_);
  std::set<AttemptKey> closed_ ABSL_GUARDED_BY(mutex_);
};

// Another transport that counts its connections.
class ConnectCounter final : public Transport {
 public:
  explicit ConnectCounter(Transport* transport) : transport_(*transport) {}

  absl::StatusOr<TransportMemory> AllocateRegion(size_t bytes) override { return transport_.AllocateRegion(bytes); }
  absl::Status Start(TransportEvents* events) override { return transport_.Start(events); }
  std::string address() const override { return transport_.address(); }
  size_t max_message_bytes() const override { return transport_.max_message_bytes(); }
  void Connect(const std::string& address, std::function<void(absl::StatusOr<PeerId>)> done) override {
    ++connects_;
    transport_.Connect(address, std::move(done));
  }
  void Send(PeerId peer, std::string message) override { transport_.Send(peer, std::move(message)); }
  void Put(PeerId peer, StreamId stream, std::span<const PutPiece> pieces) override {
    transport_.Put(peer, stream, pieces);
  }
  void Flush(PeerId peer, StreamId stream, std::function<void(absl::Status)> done) override {
    transport_.Flush(peer, stream, std::move(done));
  }
  void Disconnect(PeerId peer) override { transport_.Disconnect(peer); }
  std::string PathName(PeerId peer) const override { return transport_.PathName(peer); }
  void Post(absl::Duration delay, std::function<void()> task) override { transport_.Post(delay, std::move(task)); }

  int connects() const { return connects_; }

 private:
  Transport& transport_;
  std::atomic<int> connects_ = 0;
};

class PrefillSide {
 public:
  struct Settings {
    uint32_t pages = 16;
    HandoffIdentity identity{.worker_id = "prefill", .epoch = 2, .numerics_id = "numerics"};
    KvLayout layout = kLayout;
    TransportOptions transport = Options();
    SenderOptions options{};
  };

  explicit PrefillSide(const Settings& settings) {
    transport_ = *InprocTransport::Create(settings.transport);
    pool_ = MakePool(transport_.get(), settings.pages);
    counter_ = std::make_unique<ConnectCounter>(transport_.get());
    sender_ = *HandoffSender::Create(settings.identity, counter_.get(), pool_.get(), settings.options);
  }
  ~PrefillSide() {
    transport_.reset();
    MutexLock lock(mutex_);
    prompts_.clear();
  }

  HandoffSender& sender() { return *sender_; }
  InprocTransport& transport() { return *transport_; }
  int connects() const { return counter_->connects(); }
  PagePool& pool() { return *pool_; }
  Diary& diary() { return diary_; }

  void Reserve(const AttemptKey& key, const HandoffTarget& target, int tokens, std::vector<PageHash> hashes = {}) {
    const auto note = [this, name = key.request.low](const char* what) { diary_.Write(absl::StrCat(what, name)); };
    sender_->Reserve(
        key, target, tokens, std::move(hashes),
        {.on_queued = [note] { note("queued "); },
         .on_granted = [note] { note("granted "); },
         .on_flushed = [note] { note("flushed "); },
         .on_failed =
             [this, key](const Outcome& why) {
               GiveBack(key);
               diary_.Write(absl::StrCat("failed ", key.request.low, ": ", why.ToString()));
             },
         .on_done =
             [this, key](const HandoffStats& stats) {
               GiveBack(key);
               diary_.Write(absl::StrCat("done ", key.request.low, ": ", stats.bytes, " bytes by ", stats.transport));
             }});
  }

  // "Computes" the prompt and puts it layer by layer.
  void Put(const AttemptKey& key, int tokens) {
    const auto prompt = std::make_shared<Prompt>(pool_.get(), kLayout.pages_for(tokens));
    std::vector<PageId> ids;
    for (const PageRef& page : prompt->pages) ids.push_back(page.id());
    {
      MutexLock lock(mutex_);
      if (ended_.contains(key)) return;  // while we "computed"
      prompts_[key] = prompt;
    }
    for (int layer = 0; layer < kLayout.layers(); ++layer) {
      for (size_t page = 0; page < ids.size(); ++page) {
        std::memset(pool_->block(layer, ids[page]), Fill(key, layer, int(page)), kLayout.block_stride());
      }
      sender_->PutLayer(key, layer, 0, ids);
    }
  }

  void Abort(const AttemptKey& key, bool finished = false) {
    sender_->Abort(key, finished, [this, key] {
      GiveBack(key);
      diary_.Write(absl::StrCat("released ", key.request.low));
    });
  }

  bool IsEmpty() { return pool_->counts().available() == pool_->counts().total; }

 private:
  // Pages go back when the handoff has ended and Put is done with them. Their memory is overwritten: whatever still
  // read it would be found out.
  struct Prompt {
    Prompt(PagePool* of, int count) : pool(of), pages(*of->Allocate(count)) {}
    ~Prompt() {
      for (const PageRef& page : pages) {
        if (!given_back) break;  // with the transport, their memory is gone
        for (int layer = 0; layer < kLayout.layers(); ++layer) {
          std::memset(pool->block(layer, page.id()), 0, kLayout.block_stride());
        }
      }
    }
    Prompt(const Prompt&) = delete;
    Prompt& operator=(const Prompt&) = delete;
    PagePool* const pool;
    const std::vector<PageRef> pages;
    bool given_back = false;
  };

  void GiveBack(const AttemptKey& key) {
    std::shared_ptr<Prompt> prompt;  // ends after the lock
    MutexLock lock(mutex_);
    ended_.insert(key);
    const auto it = prompts_.find(key);
    if (it == prompts_.end()) return;
    prompt = std::move(it->second);
    prompt->given_back = true;
    prompts_.erase(it);
  }

  Diary diary_;
  std::unique_ptr<PagePool> pool_;
  std::unique_ptr<ConnectCounter> counter_;
  std::unique_ptr<HandoffSender> sender_;
  std::unique_ptr<InprocTransport> transport_;
  Mutex mutex_;
  std::map<AttemptKey, std::shared_ptr<Prompt>> prompts_ ABSL_GUARDED_BY(mutex_);
  std::set<AttemptKey> ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::handoff_test
