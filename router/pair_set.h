// SPDX-License-Identifier: Apache-2.0
// The pairs of workers that the router has proven, or is about to prove. No threads, clock or I/O.
//
//   state      entered when                                          next
//   unprobed   the pair is added, or a handoff of the pair failed    probing
//   probing    the owner has started a probe                         ready, failed
//   ready      a probe has passed                                    unprobed
//   failed     a probe has failed                                    probing, after a backoff
//   mismatch   added so: two workers of one model do not fit         -
//
// With P prefill and D decode workers, P x D pairs are possible. The set holds the pairs in use: each worker is in up
// to kProvenPartners pairs from the start, and in up to kMaxPartners if placement asks for more. At most kMaxProbes
// probes run at a time. A pair of mismatched workers is held only while one of the two has no partner, to tell people
// why.
//
// Workers are named by their index in the owner's table. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/steady_time.h"
#include "router/placement.h"

namespace baton::router {

class PairSet {
 public:
  static constexpr size_t kProvenPartners = 8;
  static constexpr size_t kMaxPartners = 32;
  static constexpr size_t kMaxProbes = 16;

  enum class State : uint8_t { kUnprobed, kProbing, kReady, kFailed, kMismatch };

  struct Pair {
    uint64_t id = 0;  // never used again
    size_t prefill = 0;
    size_t decode = 0;
    State state = State::kUnprobed;
    std::string detail = {};  // why the pair is not ready
    int failures = 0;
    SteadyTime next_probe = SteadyTime::InfinitePast();
    PathView path = {};

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

  explicit PairSet(size_t workers) : partners_(workers) {}

  // Adds pairs until each worker has its partners. Returns the mismatched pairs that are new.
  std::vector<Pair> Complete(const Members& members, WhyNot why_not);
  void ForgetPairsOf(size_t worker);

  // Asks for the proof of a pair of fitting workers. Does nothing if the pair is held or a worker has kMaxPartners.
  void Want(size_t prefill, size_t decode);

  // Starts the probes that are due, of those pairs that the owner can probe now.
  std::vector<Pair> StartProbes(SteadyTime now, absl::FunctionRef<bool(const Pair&)> can_probe);

  // These return the pair if its state or its detail has changed, else null.
  const Pair* OnProbed(SteadyTime now, uint64_t id, const absl::Status& status);
  const Pair* OnBroken(SteadyTime now, uint64_t id, const std::string& why);

  void OnHandedOver(uint64_t id, uint64_t bytes, double transfer_seconds, double commit_seconds);

  std::span<const Pair> pairs() const { return pairs_; }
  const Pair* Find(uint64_t id) const;

 private:
  void FindPartners(size_t worker, bool is_prefill, std::span<const size_t> others, WhyNot why_not,
                    std::vector<Pair>& mismatches);
  void Add(Pair pair);
  template <typename Condition>
  void EraseIf(Condition condition);
  bool Holds(size_t prefill, size_t decode) const;
  Pair* FindMutable(uint64_t id);

  std::vector<Pair> pairs_;
  // By worker: the number of pairs with another, fitting worker. A worker's pair with itself needs no path.
  std::vector<size_t> partners_;
  uint64_t next_id_ = 1;
};

// As people read the state.
const char* NameOf(PairSet::State state);

}  // namespace baton::router
