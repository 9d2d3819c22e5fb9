// SPDX-License-Identifier: Apache-2.0
// A ReceiverMachine with a pool of ten pages of one token, and the peers Ann and Bob.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "fifo_admission.h"
#include "kvtransfer/handoff/receiver_machine.h"
#include "tests/status_matchers.h"

namespace baton::handoff {

inline constexpr PeerId kAnn{1};
inline constexpr PeerId kBob{2};

inline AttemptKey Key(uint64_t request, uint32_t attempt = 1) { return {.request = {0, request}, .attempt = attempt}; }

inline constexpr int kMaxWaiting = 4;

class FakePages final : public FifoAdmission {
 public:
  explicit FakePages(int total) : FifoAdmission(kMaxWaiting), total_(total) {}
  int free_pages() const { return total_ - int(used_.size()); }
  void Release(std::span<const PageId> pages) override {
    for (PageId page : pages) {
      if (IsCached(page)) {
        --shared_;
        continue;
      }
      EXPECT_EQ(used_.erase(ToIndex(page)), 1u);
      quarantined_.erase(ToIndex(page));
    }
  }
  void SetQuarantined(std::span<const PageId> pages, bool quarantined) override {
    for (PageId page : pages) {
      EXPECT_FALSE(IsCached(page)) << "others read it";
      if (quarantined) {
        quarantined_.insert(ToIndex(page));
      } else {
        quarantined_.erase(ToIndex(page));
      }
    }
  }
  int quarantined() const { return int(quarantined_.size()); }
  int shared() const { return shared_; }  // how often cached pages are held
  // `page`, which is not of `total`, holds what `name` says.
  void SetCached(const PageHash& name, PageId page) { cached_[name] = page; }

 protected:
  GrantedPages Allocate(int count, std::span<const PageHash> names) override {
    GrantedPages granted;
    for (const PageHash& name : names) {
      if (!cached_.contains(name)) break;
      granted.pages.push_back(cached_.at(name));
    }
    granted.cached = int(granted.pages.size());
    EXPECT_LT(granted.cached, count);
    if (free_pages() < count - granted.cached) return {};
    for (uint32_t i = 0; int(granted.pages.size()) < count; ++i) {
      if (used_.insert(i).second) granted.pages.push_back(PageId{i});
    }
    shared_ += granted.cached;
    return granted;
  }
  int usable_pages() const override { return total_ - quarantined(); }

 private:
  bool IsCached(PageId page) const {
    return std::any_of(cached_.begin(), cached_.end(), [&](const auto& entry) { return entry.second == page; });
  }

  int total_;
  int shared_ = 0;
  std::map<PageHash, PageId> cached_;
  std::set<uint32_t> used_;
  std::set<uint32_t> quarantined_;
};

// Returns an action as a short text: "<request>:<message or action>".
inline std::string Short(const ReceiverMachine::Action& action) {
  if (const auto* send = std::get_if<ReceiverMachine::Send>(&action)) {
    const uint64_t request = KeyOf(send->message).request.low;
    if (std::holds_alternative<Queued>(send->message)) return absl::StrCat(request, ":Queued");
    if (std::holds_alternative<Granted>(send->message)) return absl::StrCat(request, ":Granted");
    if (std::holds_alternative<Revoke>(send->message)) return absl::StrCat(request, ":Revoke");
    if (const auto* refused = std::get_if<Refused>(&send->message)) {
      return absl::StrCat(request, ":Refused(", std::string(Name(refused->cause)), ")");
    }
    if (const auto* committed = std::get_if<Committed>(&send->message)) {
      return absl::StrCat(request, committed->error.empty() ? ":Committed" : ":Committed(error)");
    }
    return "a message of the writer's";
  }
  if (const auto* received = std::get_if<ReceiverMachine::Received>(&action)) {
    return absl::StrCat(received->key.request.low, ":received");
  }
  if (const auto* failed = std::get_if<ReceiverMachine::Failed>(&action)) {
    return absl::StrCat(failed->key.request.low, ":failed");
  }
  return absl::StrCat(std::get<ReceiverMachine::FinishedByWriter>(action).key.request.low, ":finished");
}

class ReceiverTest : public ::testing::Test {
 protected:
  // Pages of one token; a pool of ten.
  static ReceiverConfig Config() {
    static const KvLayout layout(2, {.page_tokens = 1});
    return {.layout = &layout, .pages_total = 10, .max_attempts = 100};
  }

  void SetUp() override {
    On(ReceiverMachine::PeerUp{kAnn});
    On(ReceiverMachine::PeerUp{kBob});
  }

  std::vector<std::string> On(const ReceiverMachine::Event& event) {
    last_ = receiver_.On(event, pages_);
    std::vector<std::string> names;
    for (const ReceiverMachine::Action& action : last_) names.push_back(Short(action));
    return names;
  }
  std::vector<std::string> From(PeerId peer, Message message) {
    return On(ReceiverMachine::From{peer, std::move(message)});
  }
  // Opens attempt 1 of the request and reserves for it.
  std::vector<std::string> Reserving(PeerId peer, uint64_t request, int tokens) {
    EXPECT_OK(receiver_.Open(Key(request), absl::Time()));
    return From(peer, Reserve{Key(request), tokens, {}});
  }
  std::vector<std::string> Silent(PeerId peer) {
    return On(ReceiverMachine::PeerChanged{peer, PeerState::kSilent, {}});
  }
  std::vector<std::string> Alive(PeerId peer) { return On(ReceiverMachine::PeerChanged{peer, PeerState::kAlive, {}}); }
  std::vector<std::string> Revoked(PeerId peer) {
    return On(ReceiverMachine::PeerChanged{peer, PeerState::kRevoked, absl::UnavailableError("died")});
  }
  Granted LastGrant() const {
    for (const ReceiverMachine::Action& action : last_) {
      const auto* send = std::get_if<ReceiverMachine::Send>(&action);
      if (send != nullptr && std::holds_alternative<Granted>(send->message)) return std::get<Granted>(send->message);
    }
    ADD_FAILURE() << "nothing was granted";
    return {};
  }
  // Returns the Commit of the writer of `grant` after all puts.
  static Commit CommitOf(const Granted& grant) {
    uint64_t sum = 0;
    for (int layer : {0, 1}) {
      for (const int index : grant.wanted) sum += BlockTag(layer, grant.pages[size_t(index)]);
    }
    const int tokens = int(grant.pages.size());
    return {grant.key, tokens, {5}, CommitTag(grant.key, tokens, sum)};
  }

  ReceiverMachine receiver_{Config()};
  FakePages pages_{10};
  std::vector<ReceiverMachine::Action> last_;
};

}  // namespace baton::handoff
