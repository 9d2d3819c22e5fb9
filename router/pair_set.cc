// SPDX-License-Identifier: Apache-2.0
#include "router/pair_set.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "router/backoff.h"

namespace baton::router {
namespace {

constexpr Backoff kProbeBackoff{absl::Milliseconds(100), absl::Seconds(5)};
constexpr absl::Duration kNoRoomDelay = absl::Milliseconds(500);
constexpr absl::Duration kPathMemory = absl::Minutes(1);

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
  if (PartnersOf(worker) >= kPartners) return;
  const auto pair_with = [&](size_t other) {
    return is_prefill ? Pair{.prefill = worker, .decode = other} : Pair{.prefill = other, .decode = worker};
  };
  std::optional<Pair> mismatch;
  std::vector<std::pair<size_t, size_t>> fitting;  // number of partners, worker
  for (const size_t other : others) {
    Pair pair = pair_with(other);
    pair.detail = why_not(pair.prefill, pair.decode);
    if (pair.detail.empty()) {
      fitting.emplace_back(PartnersOf(other), other);
    } else if (!mismatch || Holds(pair.prefill, pair.decode)) {  // prefers the pair that people know already
      pair.state = State::kMismatch;
      mismatch = std::move(pair);
    }
  }
  if (fitting.empty() && mismatch) mismatches.push_back(*std::move(mismatch));
  std::ranges::sort(fitting);
  for (const auto& [_, other] : fitting) {
    if (PartnersOf(worker) >= kPartners) return;
    Pair pair = pair_with(other);
    if (!Holds(pair.prefill, pair.decode)) Add(std::move(pair));
  }
}

void PairSet::ForgetPairsOf(size_t worker) {
  EraseIf([&](const Pair& pair) { return pair.prefill == worker || pair.decode == worker; });
}

void PairSet::Want(SteadyTime now, size_t prefill, size_t decode) {
  if (Holds(prefill, decode)) return;
  if (std::ranges::count(pairs_, true, &Pair::on_demand) >= static_cast<ptrdiff_t>(kMaxOnDemand)) {
    const Pair* oldest = nullptr;
    for (const Pair& pair : pairs_) {
      if (pair.on_demand && (oldest == nullptr || pair.last_used < oldest->last_used)) oldest = &pair;
    }
    EraseIf([id = oldest->id](const Pair& pair) { return pair.id == id; });
  }
  Add({.prefill = prefill, .decode = decode, .on_demand = true, .last_used = now});
}

void PairSet::NoteUse(SteadyTime now, uint64_t id) {
  if (Pair* pair = FindMutable(id)) pair->last_used = now;
}

std::vector<PairSet::Pair> PairSet::StartProbes(SteadyTime now, absl::FunctionRef<bool(const Pair&)> can_probe) {
  size_t running = 0;
  absl::flat_hash_map<size_t, size_t> running_of;
  const auto start = [&](const Pair& pair) {
    ++running;
    ++running_of[pair.prefill];
    if (!pair.local()) ++running_of[pair.decode];
  };
  const auto is_busy = [&](size_t worker) { return running_of[worker] >= kMaxProbesOfAWorker; };
  std::vector<Pair*> due;
  for (Pair& pair : pairs_) {
    if (pair.state == State::kProbing) start(pair);
    const bool waits = pair.state == State::kUnprobed || pair.state == State::kFailed;
    if (waits && pair.next_probe <= now && can_probe(pair)) due.push_back(&pair);
  }
  std::ranges::stable_sort(due, {}, &Pair::next_probe);
  std::vector<Pair> started;
  for (Pair* pair : due) {
    if (running >= kMaxProbes) break;
    if (is_busy(pair->prefill) || is_busy(pair->decode)) continue;
    pair->state = State::kProbing;
    start(*pair);
    started.push_back(*pair);
  }
  return started;
}

const PairSet::Pair* PairSet::OnProbed(SteadyTime now, uint64_t id, const absl::Status& status) {
  Pair* pair = FindMutable(id);
  if (pair == nullptr || pair->state != State::kProbing) return nullptr;
  if (status.ok()) {
    pair->state = State::kReady;
    ++version_;
    pair->detail.clear();
    pair->logged = absl::StatusCode::kOk;
    if (pair->local()) pair->failures = 0;  // no handoff follows
    return pair;
  }
  pair->detail = status.ToString();
  if (absl::IsResourceExhausted(status)) {
    pair->state = State::kUnprobed;
    pair->next_probe = now + kNoRoomDelay;
    return nullptr;
  }
  pair->state = State::kFailed;
  ++pair->failures;
  pair->next_probe = now + kProbeBackoff.After(pair->failures);
  const bool is_news = pair->logged != status.code();
  pair->logged = status.code();
  return is_news ? pair : nullptr;
}

const PairSet::Pair* PairSet::OnBroken(SteadyTime now, uint64_t id, const std::string& why) {
  Pair* pair = FindMutable(id);
  if (pair == nullptr || pair->state != State::kReady) return nullptr;
  pair->state = State::kUnprobed;
  ++version_;
  pair->detail = why;
  ++pair->failures;
  pair->next_probe = now + kProbeBackoff.After(pair->failures);
  return pair;
}

void PairSet::OnHandedOver(SteadyTime now, uint64_t id, const v1::HandedOver& measured) {
  Pair* pair = FindMutable(id);
  if (pair == nullptr) return;
  pair->failures = 0;
  pair->path = RecentPath(now, *pair);
  pair->path_measured = now;
  pair->transport = measured.transport();
  NoteHandoff(pair->path, measured.kv_bytes(), measured.transfer_seconds(), measured.transfer_exposed_seconds());
}

PathView PairSet::RecentPath(SteadyTime now, const Pair& pair) {
  return now - pair.path_measured > kPathMemory ? PathView{} : pair.path;
}

size_t PairSet::PartnersOf(size_t worker) const {
  const auto it = partners_.find(worker);
  return it == partners_.end() ? 0 : it->second;
}

void PairSet::Add(Pair pair) {
  pair.id = next_id_++;
  ++version_;
  if (pair.state != State::kMismatch && !pair.local()) {
    ++partners_[pair.prefill];
    ++partners_[pair.decode];
  }
  held_.insert({pair.prefill, pair.decode});
  pairs_.push_back(std::move(pair));
}

template <typename Condition>
void PairSet::EraseIf(Condition condition) {
  std::erase_if(pairs_, [&](const Pair& pair) {
    if (!condition(pair)) return false;
    ++version_;
    held_.erase({pair.prefill, pair.decode});
    if (pair.state != State::kMismatch && !pair.local()) {
      for (const size_t worker : {pair.prefill, pair.decode}) {
        if (--partners_[worker] == 0) partners_.erase(worker);
      }
    }
    return true;
  });
}

const PairSet::Pair* PairSet::Find(uint64_t id) const {
  const auto it = std::ranges::lower_bound(pairs_, id, {}, &Pair::id);
  return it == pairs_.end() || it->id != id ? nullptr : &*it;
}

PairSet::Pair* PairSet::FindMutable(uint64_t id) { return const_cast<Pair*>(std::as_const(*this).Find(id)); }

}  // namespace baton::router
