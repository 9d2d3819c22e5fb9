// SPDX-License-Identifier: Apache-2.0
// Records a transport's events, so that tests can wait for events. Thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "common/steady_time.h"
#include "kvtransfer/transport.h"

namespace baton::testing {

// Ten times what anything here may take.
inline constexpr absl::Duration kPatience = absl::Seconds(30);

class RecordingEvents : public TransportEvents {
 public:
  struct State {
    PeerId peer;
    PeerState state;
    absl::Status why;
  };

  void OnPeerAccepted(PeerId peer) override {
    Record([&] { accepted_.push_back(peer); });
  }
  void OnMessage(PeerId peer, std::string_view message) override {
    Record([&] { messages_.emplace_back(peer, std::string(message)); });
  }
  void OnPeerState(PeerId peer, PeerState state, const absl::Status& why) override {
    Record([&] { states_.push_back({peer, state, why}); });
  }
  bool AllowWrite(PeerId peer, StreamId stream, uint64_t offset, uint64_t bytes) override {
    MutexLock lock(mutex_);
    return allow_write_ == nullptr || allow_write_(peer, stream, offset, bytes);
  }

  void set_allow_write(std::function<bool(PeerId, StreamId, uint64_t, uint64_t)> allow) {
    MutexLock lock(mutex_);
    allow_write_ = std::move(allow);
  }

  std::vector<PeerId> accepted() const { return Copy(&RecordingEvents::accepted_); }
  std::vector<std::pair<PeerId, std::string>> messages() const { return Copy(&RecordingEvents::messages_); }
  std::vector<State> states() const { return Copy(&RecordingEvents::states_); }

  // False if the condition, a function of this object's records, does not come true.
  bool WaitUntil(const std::function<bool()>& condition, absl::Duration patience = kPatience) const {
    const SteadyTime deadline = SteadyTime::Now() + patience;
    while (!condition()) {
      MutexLock lock(mutex_);
      if (!changed_.WaitUntil(mutex_, std::min(deadline, SteadyTime::Now() + absl::Milliseconds(20))) &&
          SteadyTime::Now() >= deadline) {
        return false;
      }
    }
    return true;
  }
  bool WaitForAccepted(size_t count) const {
    return WaitUntil([&] { return accepted().size() >= count; });
  }
  bool WaitForMessages(size_t count) const {
    return WaitUntil([&] { return messages().size() >= count; });
  }
  bool WaitForState(PeerId peer, PeerState state, absl::Duration patience = kPatience) const {
    return WaitUntil([&] { return Has(peer, state); }, patience);
  }
  bool Has(PeerId peer, PeerState state) const {
    for (const State& seen : states()) {
      if (seen.peer == peer && seen.state == state) return true;
    }
    return false;
  }
  absl::Status WhyRevoked(PeerId peer) const {
    for (const State& seen : states()) {
      if (seen.peer == peer && seen.state == PeerState::kRevoked) return seen.why;
    }
    return absl::OkStatus();
  }

 private:
  void Record(const std::function<void()>& record) {
    MutexLock lock(mutex_);
    record();
    changed_.NotifyAll();
  }
  template <typename T>
  T Copy(T RecordingEvents::* member) const {
    MutexLock lock(mutex_);
    return this->*member;
  }

  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<PeerId> accepted_;
  std::vector<std::pair<PeerId, std::string>> messages_;
  std::vector<State> states_;
  std::function<bool(PeerId, StreamId, uint64_t, uint64_t)> allow_write_;
};

// A result that a callback brings.
template <typename T>
class Waiting {
 public:
  std::function<void(T)> Callback() {
    return [this](T value) {
      MutexLock lock(mutex_);
      values_.push_back(std::move(value));
      changed_.NotifyAll();
    };
  }
  bool Wait(absl::Duration patience = kPatience) {
    const SteadyTime deadline = SteadyTime::Now() + patience;
    MutexLock lock(mutex_);
    while (values_.empty()) {
      if (!changed_.WaitUntil(mutex_, deadline) && values_.empty() && SteadyTime::Now() >= deadline) return false;
    }
    return true;
  }
  bool done() const {
    MutexLock lock(mutex_);
    return !values_.empty();
  }
  T Get() const {
    MutexLock lock(mutex_);
    return values_.front();
  }
  size_t calls() const {
    MutexLock lock(mutex_);
    return values_.size();
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<T> values_;
};

inline absl::StatusOr<PeerId> ConnectAndWait(Transport& transport, const std::string& address) {
  auto result = std::make_shared<Waiting<absl::StatusOr<PeerId>>>();
  transport.Connect(address, [result, call = result->Callback()](absl::StatusOr<PeerId> peer) { call(peer); });
  if (!result->Wait()) return absl::DeadlineExceededError("Connect never called back");
  return result->Get();
}

inline absl::Status FlushAndWait(Transport& transport, PeerId peer, StreamId stream) {
  auto result = std::make_shared<Waiting<absl::Status>>();
  transport.Flush(peer, stream, [result, call = result->Callback()](const absl::Status& status) { call(status); });
  if (!result->Wait()) return absl::DeadlineExceededError("Flush never called back");
  return result->Get();
}

}  // namespace baton::testing
