// SPDX-License-Identifier: Apache-2.0
// Pages of a prompt that come from a tier: the Scheduler decides, waits and falls back to computing.
#include <algorithm>
#include <span>
#include <utility>

#include "common/log.h"
#include "worker/scheduler/load_plan.h"
#include "worker/scheduler/scheduler.h"

namespace baton {
namespace {

// A load is late once computing would have taken as long, but no sooner than this, and if the time is not known, after
// this.
constexpr absl::Duration kLeastPatience = absl::Milliseconds(100);
constexpr absl::Duration kPatienceWithoutCost = absl::Seconds(10);
// A late load stops behind the page that it reads. If that read takes longer than this, the prompt takes other pages.
constexpr absl::Duration kStuck = absl::Seconds(1);

}  // namespace

int Scheduler::CountInTiers(Job& job, int published) const {
  if (parts_.tiers == nullptr) return 0;
  const std::span<const PageHash> names = job.sequence.page_names();
  const int groups = parts_.pool->layout().groups();
  return static_cast<int>(parts_.tiers->Find(names.subspan(published)).size()) / groups * groups;
}

// Tokens of older prompts that have started or will start before `job`, but for those that wait for another worker.
int Scheduler::TokensAhead(const Job& job) const {
  int tokens = 0;
  for (const auto& [age, other] : jobs_) {
    if (other.get() == &job) break;
    if (other->phase == Phase::kComputing || other->loads()) tokens += TokensToCompute(*other);
  }
  return tokens;
}

// Returns false and leaves `pages` as they are if no load saves time.
bool Scheduler::StartLoad(Job& job, SharedPages* pages) {
  if (parts_.tiers == nullptr) return false;
  const std::span<const PageHash> names = job.sequence.sharable_names().subspan(pages->cached);
  if (names.empty()) return false;
  const std::vector<TierKind> found = parts_.tiers->Find(names);
  const KvLayout& layout = parts_.pool->layout();
  const int position = layout.tokens_in(pages->cached);
  const int ahead = TokensAhead(job);
  const int count = PagesToLoad({.found = found,
                                 .groups = layout.groups(),
                                 .page_tokens = layout.page_tokens(),
                                 .position = position,
                                 .pending = static_cast<int>(job.sequence.tokens().size()) - position,
                                 .chunk_tokens = limits_.chunk_tokens,
                                 .tokens_ahead = ahead},
                                parts_.tiers->speed(), times_.cost);
  parts_.metrics->TiersAsked(job.sequence.attempt(), names.size(), found, count);
  job.expected_cached = position + layout.tokens_in(count);
  if (count == 0) return false;
  auto load = std::make_shared<TierLoad>();
  load->names.assign(names.begin(), names.begin() + count);
  load->kinds.assign(found.begin(), found.begin() + count);
  const auto first = pages->pages.begin() + pages->cached;
  load->pages.assign(std::make_move_iterator(first), std::make_move_iterator(first + count));
  const SteadyTime now = parts_.now();
  const absl::Duration computing =
      times_.cost.known()
          ? absl::Seconds(SecondsToCompute(position, layout.tokens_in(count), limits_.chunk_tokens, times_.cost) +
                          SecondsToCompute(0, ahead, limits_.chunk_tokens, times_.cost))
          : kPatienceWithoutCost;
  job.loading = Job::Loading{
      .load = load, .pages = std::move(*pages), .since = now, .late_at = now + std::max(computing, kLeastPatience)};
  const AttemptKey key = job.sequence.key();
  parts_.tiers->Load(load, [this, key, load] { Post([this, key, load] { OnLoaded(key, load); }); });
  return true;
}

SteadyTime Scheduler::WhenLate(const Job& job) const {
  return job.loading->load->given_up ? job.loading->late_at + kStuck : job.loading->late_at;
}

void Scheduler::GiveUpLateLoads() {
  if (parts_.tiers == nullptr) return;
  const SteadyTime now = parts_.now();
  std::vector<AttemptKey> stuck;
  bool gave_up = false;
  for (auto& [age, job] : jobs_) {
    if (!job->loads() || now < WhenLate(*job)) continue;
    if (job->loading->load->given_up.exchange(true)) {
      stuck.push_back(age.key);
    } else {
      gave_up = true;
    }
  }
  if (gave_up) parts_.tiers->DropGivenUp();
  for (const AttemptKey& key : stuck) {
    Job& job = *jobs_.Find(key);
    // The loader may still write to the load's pages, which the load keeps.
    absl::StatusOr<std::vector<PageRef>> others =
        parts_.ledger->Grow(static_cast<int>(job.loading->load->names.size()));
    if (!others.ok()) {
      job.loading->late_at = now;  // tries again after kStuck
      continue;
    }
    Log(LogLevel::kWarning, "attempt.load_stuck",
        {{"request", key.request.ToString()}, {"attempt", key.attempt}, {"since", now - job.loading->since}});
    EndLoad(job, *std::move(others), /*loaded=*/0);
  }
}

void Scheduler::OnLoaded(const AttemptKey& key, const std::shared_ptr<TierLoad>& load) {
  Job* job = jobs_.Find(key);
  if (job == nullptr || !job->loads() || job->loading->load != load) return;  // the pages return with the load
  parts_.metrics->TiersLoaded(job->sequence.attempt(), parts_.now() - job->loading->since);
  const int groups = parts_.pool->layout().groups();
  EndLoad(*job, std::move(load->pages), load->loaded / groups * groups);
}

// The prompt goes on with `pages` in the places of the load's pages.
void Scheduler::EndLoad(Job& job, std::vector<PageRef> pages, int loaded) {
  SharedPages all = std::move(job.loading->pages);
  std::move(pages.begin(), pages.end(), all.pages.begin() + all.cached);
  job.loading.reset();
  Begin(job, std::move(all), loaded);
  if (job.phase == Phase::kReserving) Reserve(job);
}

}  // namespace baton
