// SPDX-License-Identifier: Apache-2.0
// The pairs of workers that the router has proven, or is about to prove. No threads, clock or I/O.
//
//   state      entered when                                          next
//   unprobed   the pair is added, a handoff of the pair failed,      probing
//              or a probe found no room
//   probing    the owner has started a probe                         ready, failed, unprobed
//   ready      a probe has passed                                    unprobed
//   failed     a probe has failed                                    probing, after a backoff
//   mismatch   added so: two workers of one model do not fit         forgotten once both workers have a partner
//
// With P prefill and D decode workers, P x D pairs are possible. The set holds fewer: enough for each worker to have
// kPartners partners, and the kMaxOnDemand pairs that placement asked for and used last. A pair of mismatched workers
// is held only while one of the two has no partner, to tell people why.
//
// Workers are named by their index in the owner's table. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "baton/v1/worker.pb.h"
#include "common/steady_time.h"
#include "router/placement.h"

namespace baton::router {

class PairSet {
 public:
  static constexpr size_t kPartners = 8;
  static constexpr size_t kMaxOnDemand = 512;
  static constexpr size_t kMaxProbes = 16;          // at a time
  static constexpr size_t kMaxProbesOfAWorker = 4;  // at a time: a worker that hangs must not stop all probes

  enum class State : uint8_t { kUnprobed, kProbing, kReady, kFailed, kMismatch };

  struct Pair {
    uint64_t id = 0;  // never used again
    size_t prefill = 0;
    size_t decode = 0;
    State state = State::kUnprobed;
    std::string detail = {};                          // why the pair is not ready
    absl::StatusCode logged = absl::StatusCode::kOk;  // the failure that the log has
    int failures = 0;                                 // of probes and handoffs since the last handoff
    SteadyTime next_probe = SteadyTime::InfinitePast();
    bool on_demand = false;
    SteadyTime last_used = SteadyTime::InfinitePast();
    PathView path = {};
    SteadyTime path_measured = SteadyTime::InfinitePast();
    std::string transport = {};  // of the latest handoff

    bool local() const { return prefill == decode; }
  };

  // Live workers of one model. A worker of role both is among `decodes`, and its pair with itself is in `both`.
  struct Members {
    std::vector<size_t> prefills;
    std::vector<size_t> decodes;
    std::vector<size_t> both;
  };
  // Why two workers of one model cannot be a pair; empty if they can.
  using WhyNot = absl::FunctionRef<std::string(size_t prefill, size_t decode)>;

  // Adds pairs until each worker has its partners. Returns the mismatched pairs that are new.
  std::vector<Pair> Complete(const Members& members, WhyNot why_not);
  void ForgetPairsOf(size_t worker);

  // Adds the pair of two fitting workers on demand, in place of the pair on demand that was used least recently.
  void Want(SteadyTime now, size_t prefill, size_t decode);
  void NoteUse(SteadyTime now, uint64_t id);

  // Starts the probes that are due, of those pairs that the owner can probe now. The longest due goes first.
  std::vector<Pair> StartProbes(SteadyTime now, absl::FunctionRef<bool(const Pair&)> can_probe);

  // These return the pair if there is news for the log, else null.
  const Pair* OnProbed(SteadyTime now, uint64_t id, const absl::Status& status);
  const Pair* OnBroken(SteadyTime now, uint64_t id, const std::string& why);

  void OnHandedOver(SteadyTime now, uint64_t id, const v1::HandedOver& measured);

  // The path as measured within the last minute: a path that looked slow must get the chance to look better.
  static PathView RecentPath(SteadyTime now, const Pair& pair);

  bool Holds(size_t prefill, size_t decode) const { return held_.contains({prefill, decode}); }
  std::span<const Pair> pairs() const { return pairs_; }  // in order of id
  // Changes whenever a pair is added, forgotten, becomes ready or ceases to be ready.
  uint64_t version() const { return version_; }
  const Pair* Find(uint64_t id) const;

 private:
  void FindPartners(size_t worker, bool is_prefill, std::span<const size_t> others, WhyNot why_not,
                    std::vector<Pair>& mismatches);
  size_t PartnersOf(size_t worker) const;
  void Add(Pair pair);
  template <typename Condition>
  void EraseIf(Condition condition);
  Pair* FindMutable(uint64_t id);

  std::vector<Pair> pairs_;                              // in order of id
  absl::flat_hash_set<std::pair<size_t, size_t>> held_;  // prefill, decode
  // By worker: the number of pairs with another, fitting worker, if any. A worker's pair with itself needs no path.
  absl::flat_hash_map<size_t, size_t> partners_;
  uint64_t next_id_ = 1;
  uint64_t version_ = 0;
};

// As people read the state.
const char* NameOf(PairSet::State state);

}  // namespace baton::router
