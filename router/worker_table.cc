// SPDX-License-Identifier: Apache-2.0
#include "router/worker_table.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "router/backoff.h"

namespace baton::router {
namespace {

constexpr Backoff kConnectBackoff{absl::Milliseconds(100), absl::Seconds(1)};
constexpr absl::Duration kPagesBackoff = absl::Seconds(1);
constexpr absl::Duration kAssetsBackoff = absl::Seconds(1);

// A worker that has not reported an attempt for this long has lost it, or has ended it between two reports.
constexpr absl::Duration kReportLag = absl::Milliseconds(600);
constexpr absl::Duration kMaxReportAge = absl::Minutes(1);

// Why a report cannot be used; empty when it can.
std::string Unusable(const v1::WorkerStatus& status) {
  if (status.protocol() != v1::WORKER_PROTOCOL_CURRENT) {
    return absl::StrCat("speaks worker protocol ", status.protocol(), ", this router ", v1::WORKER_PROTOCOL_CURRENT);
  }
  if (status.worker_id().empty()) return "its status has no worker id";
  if (status.role() != v1::WORKER_ROLE_PREFILL && !Decodes(status.role()))
    return absl::StrCat("its status has an unknown role, ", status.role());
  if (status.state() != v1::WORKER_STATE_STARTING && status.capacity().page_tokens() == 0) {
    return "its status has no page size";
  }
  return "";
}

// Whether both reports say the same of what the worker can serve.
bool IsSameOffer(const v1::WorkerStatus& a, const v1::WorkerStatus& b) {
  return a.role() == b.role() && a.model().SerializeAsString() == b.model().SerializeAsString() &&
         a.capacity().SerializeAsString() == b.capacity().SerializeAsString();
}

}  // namespace

WorkerTable::WorkerTable(Options options) : options_(std::move(options)) {}

const char* WorkerTable::RoleName(v1::WorkerRole role) {
  switch (role) {
    case v1::WORKER_ROLE_PREFILL: return "prefill";
    case v1::WORKER_ROLE_DECODE: return "decode";
    case v1::WORKER_ROLE_BOTH: return "both";
    default: return "";
  }
}

const char* WorkerTable::StateName(const Worker& worker) {
  if (worker.lost) return "lost";
  if (!worker.ref || !worker.stream_open) return "connecting";
  if (!worker.listed) return "draining";
  switch (worker.status.state()) {
    case v1::WORKER_STATE_SERVING: return "serving";
    case v1::WORKER_STATE_DRAINING: return "draining";
    case v1::WORKER_STATE_SWITCHING: return "switching";
    default: return "starting";
  }
}

void WorkerTable::Report(std::string name, std::string subject, std::string detail, bool is_bad) {
  effects_.events.push_back({std::move(name), std::move(subject), std::move(detail), is_bad});
}

// ----------------------------------------------------------------------------------------------------------- workers

void WorkerTable::SetMembers(SteadyTime now, std::span<const std::string> addresses) {
  absl::flat_hash_set<std::string_view> listed(addresses.begin(), addresses.end());
  for (auto& [index, worker] : workers_) {
    const bool is_listed = listed.erase(worker.address) > 0;
    if (is_listed == worker.listed) continue;
    worker.listed = is_listed;
    worker.unlisted_at = now;
    Report(is_listed ? "worker.listed" : "worker.unlisted", worker.id, worker.address, false);
    pairs_.ForgetPairsOf(index);
    members_changed_ = true;
    ++version_;
  }
  for (const std::string& address : addresses) {
    if (listed.erase(address) == 0) continue;  // known, or listed twice
    Worker& worker = workers_[next_index_];
    worker.index = next_index_++;
    worker.address = worker.id = address;
    worker.pages = pages_.Add();
    effects_.joined.emplace_back(worker.index, address);
  }
}

WorkerTable::Worker* WorkerTable::Find(size_t index) {
  const auto it = workers_.find(index);
  return it == workers_.end() ? nullptr : &it->second;
}

// Forgets unlisted workers that are gone or run none of this router's requests.
void WorkerTable::ForgetUnlisted(SteadyTime now) {
  std::erase_if(workers_, [&](const auto& entry) {
    const Worker& worker = entry.second;
    if (worker.listed || (worker.live() && !options_.is_idle(*worker.ref))) return false;
    if (worker.live() && now - worker.unlisted_at < kForgetDelay) return false;
    NotePastModel(now, worker.status.model().name());
    if (worker.live()) effects_.lost.push_back(*worker.ref);
    pairs_.ForgetPairsOf(worker.index);
    effects_.forgotten.push_back(worker.index);
    pages_.Remove(worker.pages);
    ++version_;
    Report("worker.forgotten", worker.id, worker.address, false);
    return true;
  });
}

void WorkerTable::OnStatus(SteadyTime now, size_t index, const v1::WorkerStatus& status,
                           const MakeConnection& connection) {
  Worker* const found = Find(index);
  if (found == nullptr) return;
  Worker& worker = *found;
  if (std::string why = Unusable(status); !why.empty()) {
    worker.detail = std::move(why);
    return;
  }
  const WorkerKey key{status.worker_id(), status.epoch()};
  const bool is_new = !worker.ref || worker.ref->key != key;
  if (is_new && worker.live()) Lose(worker, "restarted");
  const bool was_away = is_new || worker.lost;
  const bool was_leaving = !is_new && worker.leaving();
  const bool was_serving = !is_new && worker.serving();
  const bool same_offer = !is_new && IsSameOffer(status, worker.status);
  const bool same_model = !is_new && status.model().SerializeAsString() == worker.status.model().SerializeAsString();
  const v1::WorkerRole role_before = is_new ? status.role() : worker.status.role();
  if (is_new) {
    worker.ref = WorkerRef{key, status.handoff_address(), connection()};
    worker.id = key.id;
    worker.sent.clear();
    pages_.Clear(worker.pages);
    worker.watching_pages = false;  // it needs a watch of its own
    ++worker.pages_watch;
    worker.next_pages_watch = now;
  } else if (worker.lost) {
    // The calls of before were ended for good; new ones need a group of their own.
    worker.ref->connection = connection();
  }
  worker.ref->handoff_address = status.handoff_address();
  worker.lost = false;
  worker.stream_open = true;
  worker.failed_connects = 0;
  worker.last_heard = now;
  worker.detail.clear();
  worker.status = status;
  const double age = status.load().age_seconds();
  worker.load_as_of = now - (age > 0 ? std::min(absl::Seconds(age), kMaxReportAge) : absl::ZeroDuration());
  const auto& recent = status.load().recent_requests();
  std::erase_if(worker.sent, [&](const SentWork& sent) {
    return std::ranges::find(recent, sent.request) != recent.end() || sent.at + kReportLag < worker.load_as_of;
  });
  UpdateLoad(worker);
  ForgetOrdersShownBy(worker, is_new);
  const bool same_role = role_before == status.role();
  if (was_serving != worker.serving() || was_leaving != worker.leaving() || was_away || !same_offer) ++version_;
  if (!same_role) {
    Report("worker.role_changed", worker.id,
           absl::StrCat("from ", RoleName(role_before), " to ", RoleName(status.role())), false);
  }
  if (was_away) {
    Report("worker.up", worker.id,
           absl::StrCat(worker.address, " role=", RoleName(status.role()), " model=", status.model().name(),
                        " numerics_id=", status.model().numerics_id()),
           false);
    ReportSameId(worker);
  }
  // A worker that leaves takes nothing new, and its partners need others. A new role has other partners.
  if (was_away || !same_model || !same_role || was_leaving != worker.leaving()) {
    pairs_.ForgetPairsOf(index);
    members_changed_ = true;
  }
}

// Requests for a model whose workers have all left are told to come again, not that the name is wrong.
void WorkerTable::NotePastModel(SteadyTime now, const std::string& model) {
  if (model.empty()) return;
  past_models_[model] = now;
  if (past_models_.size() <= kMaxPastModels) return;
  past_models_.erase(std::ranges::min_element(past_models_, {}, [](const auto& entry) { return entry.second; }));
}

void WorkerTable::ReportSameId(const Worker& worker) {
  for (const auto& [_, other] : workers_) {
    // A worker that came back at another address has left the first one.
    if (&other == &worker || !other.live() || !other.listed || !other.stream_open || other.id != worker.id) continue;
    Report("worker.same_id", worker.id,
           absl::StrCat(worker.address, " and ", other.address, " have the same worker id; give each its own"), true);
  }
}

void WorkerTable::OnStreamEnded(SteadyTime now, size_t index, const absl::Status& status) {
  Worker* const found = Find(index);
  if (found == nullptr) return;
  Worker& worker = *found;
  if (worker.serving()) ++version_;
  worker.connecting = false;
  worker.stream_open = false;
  ++worker.failed_connects;
  worker.next_connect = now + kConnectBackoff.After(worker.failed_connects);
  if (!worker.lost) worker.detail = absl::StrCat("no status: ", status.ok() ? "stream ended" : status.message());
}

void WorkerTable::Lose(Worker& worker, const std::string& why) {
  worker.lost = true;
  worker.detail = why;
  worker.sent.clear();
  UpdateLoad(worker);
  ++version_;
  effects_.lost.push_back(*worker.ref);
  pairs_.ForgetPairsOf(worker.index);
  members_changed_ = true;
  Report("worker.lost", worker.id, absl::StrCat(worker.address, " ", why), true);
}

void WorkerTable::AdvanceWorkers(SteadyTime now) {
  ForgetUnlisted(now);
  for (auto& [index, worker] : workers_) {
    if (worker.live() && now - worker.last_heard > options_.peer_timeout) {
      Lose(worker, absl::StrCat("silent for ", absl::FormatDuration(options_.peer_timeout)));
    }
    if (!worker.connecting && worker.next_connect <= now) {
      worker.connecting = true;
      effects_.connect.push_back(index);
    }
    const bool follows = options_.placement.policy == PlacementPolicy::kPrefix;
    if (follows && worker.serving() && !worker.watching_pages && worker.next_pages_watch <= now) {
      worker.watching_pages = true;
      effects_.watch_pages.push_back({index, ++worker.pages_watch});
    }
  }
}

void WorkerTable::OnPages(const WatchPages& watch, const v1::PageNews& news) {
  Worker* const worker = Find(watch.worker);
  if (worker == nullptr || watch.watch != worker->pages_watch) return;
  const v1::WorkerCapacity& capacity = worker->status.capacity();
  pages_.Apply(worker->pages, news, size_t{capacity.pages_total()} + capacity.tier_pages());
}

void WorkerTable::OnPagesEnded(SteadyTime now, const WatchPages& watch, const absl::Status& status) {
  Worker* const found = Find(watch.worker);
  if (found == nullptr || watch.watch != found->pages_watch) return;
  Worker& worker = *found;
  worker.watching_pages = false;
  worker.next_pages_watch = now + kPagesBackoff;
  pages_.Clear(worker.pages);
  // That the worker went away is said elsewhere.
  if (status.ok() || absl::IsUnavailable(status) || absl::IsCancelled(status)) return;
  std::string error = status.ToString();
  if (error != worker.pages_error) Report("worker.pages_unknown", worker.id, error, true);
  worker.pages_error = std::move(error);
}

// ------------------------------------------------------------------------------------------------------------ assets

const ModelAssets* WorkerTable::LoadedAssets(const Worker& worker) const {
  const auto it = assets_.find(worker.status.model().assets_fingerprint());
  return it == assets_.end() ? nullptr : it->second.loaded.get();
}

void WorkerTable::OnAssets(SteadyTime now, const std::string& fingerprint,
                           absl::StatusOr<std::shared_ptr<const ModelAssets>> assets) {
  Assets& entry = assets_[fingerprint];
  entry.fetching = false;
  if (assets.ok()) {
    entry.loaded = *std::move(assets);
    ++version_;
    Report("model.assets_loaded", fingerprint, "", false);
    const absl::Status& templates = entry.loaded->templates.status();
    if (!templates.ok() && !absl::IsNotFound(templates)) {
      Report("model.chat_refused", fingerprint, templates.ToString(), true);
    }
  } else {
    const std::string error = assets.status().ToString();
    if (error != entry.error) Report("model.assets_failed", fingerprint, error, true);
    entry.error = error;
    entry.next_fetch = now + kAssetsBackoff;
  }
}

void WorkerTable::AdvanceAssets(SteadyTime now) {
  std::erase_if(assets_, [&](const auto& entry) {
    return !entry.second.fetching && std::ranges::none_of(workers_, [&](const auto& known) {
      const Worker& worker = known.second;
      return worker.ref && worker.status.model().assets_fingerprint() == entry.first;
    });
  });
  for (const auto& [index, worker] : workers_) {
    if (!worker.serving()) continue;
    const std::string& fingerprint = worker.status.model().assets_fingerprint();
    Assets& entry = assets_[fingerprint];
    if (entry.loaded != nullptr || entry.fetching || entry.next_fetch > now) continue;
    entry.fetching = true;
    effects_.fetch.push_back({index, fingerprint});
  }
}

// ------------------------------------------------------------------------------------------------------------- pairs

void WorkerTable::CompletePairs() {
  std::map<std::string, PairSet::Members> models;
  for (const auto& [index, worker] : workers_) {
    const v1::WorkerStatus& status = worker.status;
    // A starting worker does not know its model.
    if (!worker.live() || worker.leaving() || status.model().name().empty()) continue;
    PairSet::Members& members = models[status.model().name()];
    (Decodes(status.role()) ? members.decodes : members.prefills).push_back(index);
    if (status.role() == v1::WORKER_ROLE_BOTH) members.both.push_back(index);
  }
  for (const auto& [_, members] : models) {
    const auto why_not = [this](size_t prefill, size_t decode) { return WhyNoPair(prefill, decode); };
    for (const Pair& pair : pairs_.Complete(members, why_not)) {
      Report("pair.mismatch", PairName(pair), pair.detail, true);
    }
  }
}

std::string WorkerTable::WhyNoPair(size_t prefill, size_t decode) const {
  const v1::ServedModel& p = workers_.at(prefill).status.model();
  const v1::ServedModel& d = workers_.at(decode).status.model();
  if (p.numerics_id() != d.numerics_id()) {
    return absl::StrCat("numerics ids differ: ", p.numerics_id(), " and ", d.numerics_id());
  }
  return p.assets_fingerprint() == d.assets_fingerprint() ? "" : "tokenizer files differ";
}

std::string WorkerTable::PairName(const Pair& pair) const {
  return absl::StrCat(workers_.at(pair.prefill).id, "+", workers_.at(pair.decode).id);
}

void WorkerTable::AdvancePairs(SteadyTime now) {
  if (std::exchange(members_changed_, false)) CompletePairs();
  // Without the assets no request could be served anyhow.
  const auto can_probe = [this](const Pair& pair) {
    return workers_.at(pair.prefill).serving() && workers_.at(pair.decode).serving() &&
           LoadedAssets(workers_.at(pair.decode)) != nullptr;
  };
  for (const Pair& pair : pairs_.StartProbes(now, can_probe)) {
    effects_.probe.push_back(MakePlacement(pair.prefill, pair.decode, pair.id));
  }
}

void WorkerTable::OnProbed(SteadyTime now, uint64_t id, const absl::Status& status) {
  if (const Pair* pair = pairs_.OnProbed(now, id, status)) {
    Report(status.ok() ? "pair.ready" : "pair.failed", PairName(*pair), pair->detail, !status.ok());
  }
}

void WorkerTable::OnPairBroken(SteadyTime now, uint64_t id, const std::string& why) {
  if (const Pair* pair = pairs_.OnBroken(now, id, why)) Report("pair.broken", PairName(*pair), why, true);
}

void WorkerTable::OnHandedOver(SteadyTime now, uint64_t pair, const v1::HandedOver& measured) {
  pairs_.OnHandedOver(now, pair, measured);
  const Pair* known = pairs_.Find(pair);
  for (Group& group : groups_) {
    std::vector<ReadyPair>& ready = group.candidates.pairs;
    const auto it = std::ranges::lower_bound(ready, pair, {}, &ReadyPair::id);
    if (known != nullptr && it != ready.end() && it->id == pair) it->path = known->path;
  }
}

WorkerTable::Effects WorkerTable::Advance(SteadyTime now) {
  ForgetOrders(now);
  AdvanceWorkers(now);
  AdvanceAssets(now);
  AdvancePairs(now);
  return std::exchange(effects_, {});
}

bool WorkerTable::Usable(const Pair& pair) const {
  return pair.state == PairSet::State::kReady && workers_.at(pair.prefill).serving() &&
         workers_.at(pair.decode).serving();
}

std::vector<WorkerRef> WorkerTable::refs() const {
  std::vector<WorkerRef> refs;
  for (const auto& [_, worker] : workers_) {
    if (worker.ref) refs.push_back(*worker.ref);
  }
  return refs;
}

size_t WorkerTable::ready_pairs() const {
  return std::ranges::count_if(pairs_.pairs(), [&](const Pair& pair) { return Usable(pair); });
}

}  // namespace baton::router
