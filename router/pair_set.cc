// SPDX-License-Identifier: Apache-2.0
#include "router/pair_set.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "router/backoff.h"

namespace baton::router {
namespace {

constexpr Backoff kProbeBackoff{absl::Milliseconds(100), absl::Seconds(5)};

}  // namespace

const char* NameOf(PairSet::State state) {
  switch (state) {
    case PairSet::State::kUnprobed: return "unprobed";
    case PairSet::State::kProbing: return "probing";
    case PairSet::State::kReady: return "ready";
    case PairSet::State::kFailed: return "failed";
    case PairSet::State::kMismatch: return "mismatch";
  }
  return "?";
}

std::vector<PairSet::Pair> PairSet::Complete(const Members& members, WhyNot why_not) {
  for (const size_t worker : members.both) {
    if (!Holds(worker, worker)) Add({.prefill = worker, .decode = worker});
  }
  std::vector<Pair> mismatches;
  for (const size_t prefill : members.prefills) FindPartners(prefill, true, members.decodes, why_not, mismatches);
  for (const size_t decode : members.decodes) FindPartners(decode, false, members.prefills, why_not, mismatches);
  const auto is_member = [&](size_t decode) {
    return std::ranges::find(members.decodes, decode) != members.decodes.end();
  };
  const auto same_workers = [](const Pair& a) {
    return [&](const Pair& b) { return a.prefill == b.prefill && a.decode == b.decode; };
  };
  EraseIf([&](const Pair& pair) {
    return pair.state == State::kMismatch && is_member(pair.decode) &&
           std::ranges::none_of(mismatches, same_workers(pair));
  });
  std::vector<Pair> added;
  for (Pair& mismatch : mismatches) {
    if (Holds(mismatch.prefill, mismatch.decode)) continue;
    added.push_back(mismatch);
    Add(std::move(mismatch));
  }
  return added;
}

// Gives `worker` the fitting partners that have the fewest partners themselves. If none fits, notes one that does not.
void PairSet::FindPartners(size_t worker, bool is_prefill, std::span<const size_t> others, WhyNot why_not,
                           std::vector<Pair>& mismatches) {
  if (partners_[worker] >= kProvenPartners) return;
  const auto pair_with = [&](size_t other) {
    return is_prefill ? Pair{.prefill = worker, .decode = other} : Pair{.prefill = other, .decode = worker};
  };
  std::optional<Pair> mismatch;
  std::vector<std::pair<size_t, size_t>> fitting;  // number of partners, worker
  for (const size_t other : others) {
    Pair pair = pair_with(other);
    pair.detail = why_not(pair.prefill, pair.decode);
    if (pair.detail.empty()) {
      fitting.emplace_back(partners_[other], other);
    } else if (!mismatch) {
      pair.state = State::kMismatch;
      mismatch = std::move(pair);
    }
  }
  if (fitting.empty() && mismatch) mismatches.push_back(*std::move(mismatch));
  std::ranges::sort(fitting);
  for (const auto& [_, other] : fitting) {
    if (partners_[worker] >= kProvenPartners) return;
    Pair pair = pair_with(other);
    if (!Holds(pair.prefill, pair.decode)) Add(std::move(pair));
  }
}

void PairSet::ForgetPairsOf(size_t worker) {
  EraseIf([&](const Pair& pair) { return pair.prefill == worker || pair.decode == worker; });
}

void PairSet::Want(size_t prefill, size_t decode) {
  if (Holds(prefill, decode)) return;
  if (partners_[prefill] < kMaxPartners && partners_[decode] < kMaxPartners)
    Add({.prefill = prefill, .decode = decode});
}

std::vector<PairSet::Pair> PairSet::StartProbes(SteadyTime now, absl::FunctionRef<bool(const Pair&)> can_probe) {
  size_t running = std::ranges::count(pairs_, State::kProbing, &Pair::state);
  std::vector<Pair> started;
  for (Pair& pair : pairs_) {
    if (running >= kMaxProbes) break;
    if (pair.state != State::kUnprobed && pair.state != State::kFailed) continue;
    if (pair.next_probe > now || !can_probe(pair)) continue;
    pair.state = State::kProbing;
    started.push_back(pair);
    ++running;
  }
  return started;
}

const PairSet::Pair* PairSet::OnProbed(SteadyTime now, uint64_t id, const absl::Status& status) {
  Pair* pair = FindMutable(id);
  if (pair == nullptr || pair->state != State::kProbing) return nullptr;
  if (status.ok()) {
    pair->state = State::kReady;
    pair->failures = 0;
    pair->detail.clear();
    return pair;
  }
  pair->state = State::kFailed;
  ++pair->failures;
  pair->next_probe = now + kProbeBackoff.After(pair->failures);
  return std::exchange(pair->detail, status.ToString()) == pair->detail ? nullptr : pair;
}

const PairSet::Pair* PairSet::OnBroken(SteadyTime now, uint64_t id, const std::string& why) {
  Pair* pair = FindMutable(id);
  if (pair == nullptr || pair->state != State::kReady) return nullptr;
  pair->state = State::kUnprobed;
  pair->detail = why;
  pair->next_probe = now + kProbeBackoff.After(1);
  return pair;
}

void PairSet::OnHandedOver(uint64_t id, uint64_t bytes, double transfer_seconds, double commit_seconds) {
  if (Pair* pair = FindMutable(id)) NoteHandoff(pair->path, bytes, transfer_seconds, commit_seconds);
}

void PairSet::Add(Pair pair) {
  pair.id = next_id_++;
  if (pair.state != State::kMismatch && !pair.local()) {
    ++partners_[pair.prefill];
    ++partners_[pair.decode];
  }
  pairs_.push_back(std::move(pair));
}

template <typename Condition>
void PairSet::EraseIf(Condition condition) {
  std::erase_if(pairs_, [&](const Pair& pair) {
    if (!condition(pair)) return false;
    if (pair.state != State::kMismatch && !pair.local()) {
      --partners_[pair.prefill];
      --partners_[pair.decode];
    }
    return true;
  });
}

bool PairSet::Holds(size_t prefill, size_t decode) const {
  return std::ranges::any_of(pairs_,
                             [&](const Pair& pair) { return pair.prefill == prefill && pair.decode == decode; });
}

const PairSet::Pair* PairSet::Find(uint64_t id) const {
  const auto it = std::ranges::find(pairs_, id, &Pair::id);
  return it == pairs_.end() ? nullptr : &*it;
}

PairSet::Pair* PairSet::FindMutable(uint64_t id) {
  const auto it = std::ranges::find(pairs_, id, &Pair::id);
  return it == pairs_.end() ? nullptr : &*it;
}

}  // namespace baton::router
