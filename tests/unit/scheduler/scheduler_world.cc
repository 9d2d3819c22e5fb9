// SPDX-License-Identifier: Apache-2.0
#include "scheduler_world.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/status_matchers.h"

namespace baton::testing {

FakeModel::FakeModel() { config_.vocab_size = kVocab; }

absl::Status FakeModel::Forward(std::span<const SequenceInput> batch, PagePool&, const LayerDone& layer_done,
                                ForwardOutput& output) {
  std::vector<int>& step = steps.emplace_back();
  for (const SequenceInput& input : batch) step.push_back(static_cast<int>(input.tokens.size()));
  if (!next_status.ok()) return std::exchange(next_status, absl::OkStatus());
  for (int layer = 0; layer < kLayers; ++layer) {
    if (during_layer != nullptr) during_layer(layer);
    if (layer_done != nullptr && !layer_done(layer)) return absl::CancelledError("called off");
  }
  output.sampled.assign(batch.size(), {});
  for (size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].want == Want::kToken) output.sampled[i].token = (batch[i].tokens.back() + 1) % kVocab;
  }
  return absl::OkStatus();
}

void FakeSender::Reserve(const AttemptKey& key, const HandoffTarget&, int tokens, std::vector<PageHash>,
                         Events events) {
  calls.push_back(absl::StrCat("reserve ", tokens));
  handoffs[key] = std::move(events);
}

void FakeSender::PutLayer(const AttemptKey&, int layer, int first_page, std::span<const PageId> pages) {
  calls.push_back(
      absl::StrCat("put layer ", layer, " pages ", first_page, "..", first_page + static_cast<int>(pages.size()) - 1));
}

void FakeSender::Flush(const AttemptKey&) { calls.emplace_back("flush"); }

void FakeSender::Commit(const AttemptKey&, std::vector<TokenId> output) {
  std::string call = "commit";
  for (const TokenId token : output) absl::StrAppend(&call, " ", token);
  calls.push_back(std::move(call));
}

void FakeSender::Abort(const AttemptKey&, bool finished, std::function<void()> done) {
  calls.emplace_back(finished ? "abort finished" : "abort");
  released.push_back(std::move(done));
}

absl::Status FakeReceiver::OpenAttempt(const AttemptKey&, absl::Time) { return absl::OkStatus(); }

std::vector<TierKind> FakeTiers::Find(std::span<const PageHash> wanted) const {
  std::vector<TierKind> found;
  for (const PageHash& name : wanted) {
    if (!names.contains(name)) break;
    found.push_back(TierKind::kMemory);
  }
  return found;
}

void FakeTiers::Load(std::shared_ptr<TierLoad> load, std::function<void()> done) {
  loads.emplace_back(std::move(load), std::move(done));
}

void FakeTiers::DropGivenUp() {
  for (size_t i = 1; i < loads.size();) {
    if (!loads[i].first->given_up) {
      ++i;
      continue;
    }
    const std::function<void()> done = std::move(loads[i].second);
    loads.erase(loads.begin() + static_cast<std::ptrdiff_t>(i));
    done();
  }
}

void FakeTiers::Finish(std::optional<int> pages) {
  auto [load, done] = std::move(loads.front());
  loads.pop_front();
  load->loaded = pages.value_or(static_cast<int>(load->names.size()));
  load.reset();
  done();
}

void Told::OnDecodeStarted(const PromptFigures& prompt, uint32_t next_output_index) {
  figures = prompt;
  words.push_back(absl::StrCat("decode started at ", next_output_index));
}

void Told::OnToken(uint32_t, const SampledToken& token, const SamplingParams&) {
  words.push_back(absl::StrCat("token ", token.token));
}

void Told::OnHandedOver(const PromptFigures& prompt, const HandoffStats&) {
  figures = prompt;
  words.emplace_back("handed over");
}

void Told::OnFinished(Sequence::End end, TokenId, const PromptFigures&) {
  words.emplace_back(end == Sequence::End::kStop ? "finished by stop" : "finished by length");
}

void Told::OnFailed(const Outcome& outcome) {
  words.push_back("failed " + std::string(Name(outcome.cause)));
  why = outcome.detail;
}

int Told::tokens() const {
  int count = 0;
  for (const std::string& word : words) count += word.starts_with("token") ? 1 : 0;
  return count;
}

World::World(const WorldOptions& options)
    : metrics(registry, "fake", "both"),
      pool(*PagePool::Create(model.kv_layout(), options.pages)),
      ledger(pool.get(), {.max_sequences = options.schedule.max_sequences,
                          .max_waiting_reservations = 4,
                          .max_bypass = options.max_bypass,
                          .growth_watermark_pages = options.growth_watermark_pages}) {
  const auto post = [this](std::function<void()> command) { posted.push_back(std::move(command)); };
  ledger.SetHooks({.on_local = [post] { post([] {}); }, .on_reservation = nullptr});
  pool->set_on_free([this] { ledger.OnPagesFree(); });
  scheduler = std::make_unique<Scheduler>(Scheduler::Parts{.model = &model,
                                                           .pool = pool.get(),
                                                           .ledger = &ledger,
                                                           .sender = &sender,
                                                           .receiver = &receiver,
                                                           .tiers = options.tiers ? &tiers : nullptr,
                                                           .metrics = &metrics,
                                                           .load = &load,
                                                           .post = post,
                                                           .now = [this] { return clock; }},
                                          options.schedule);
}

void World::PutInTiers(const Attempt& attempt, int pages) {
  std::vector<PageHash> hashes;
  ExtendPageHashes(attempt.page_hash_root.value(), attempt.prompt, kPageTokens, hashes);
  tiers.names.insert(hashes.begin(), hashes.begin() + pages);
}

World::~World() {
  tiers.loads.clear();
  posted.clear();
  scheduler.reset();
  pool->set_on_free(nullptr);
}

Attempt World::MakeAttempt(uint64_t request, int tokens, uint32_t max_tokens, TokenId first) {
  Attempt attempt;
  attempt.key = Key(request);
  attempt.due = absl::FromUnixSeconds(static_cast<int64_t>(request));
  for (int i = 0; i < tokens; ++i) attempt.prompt.push_back((first + i) % kVocab);
  attempt.sampling.max_tokens = max_tokens;
  attempt.sampling.temperature = 0;
  return attempt;
}

std::shared_ptr<Told> World::HandOver(const Attempt& attempt) {
  auto told = std::make_shared<Told>();
  scheduler->HandOver(attempt, {"decode", 1, "address"}, told);
  return told;
}

std::shared_ptr<Told> World::Receive(const Attempt& attempt) {
  auto told = std::make_shared<Told>();
  scheduler->Receive(attempt, told);
  return told;
}

std::shared_ptr<Told> World::RunLocally(const Attempt& attempt) {
  auto told = std::make_shared<Told>();
  scheduler->RunLocally(attempt, told);
  return told;
}

std::shared_ptr<Told> World::Migrate(const MigrationOrder& order) {
  auto told = std::make_shared<Told>();
  scheduler->Migrate(order, told);
  return told;
}

void World::DeliverReceived(const AttemptKey& key, int tokens, std::vector<TokenId> output) {
  ReceivedSequence received{.key = key, .pages = {}, .tokens = tokens, .cached_tokens = 0, .output = std::move(output)};
  received.pages = *pool->Allocate(pool->layout().pages_for(tokens) + 1);
  scheduler->OnReceived(std::move(received));
}

bool World::Tick() {
  while (!posted.empty()) {
    const std::function<void()> command = std::move(posted.front());
    posted.pop_front();
    command();
  }
  clock += absl::Milliseconds(1);
  return scheduler->Tick();
}

void World::Settle(int limit) {
  for (int i = 0; i < limit; ++i) {
    if (!Tick() && posted.empty()) return;
  }
  ADD_FAILURE() << "still busy after " << limit << " ticks";
}

void World::ReleaseAborted() {
  for (const auto& done : std::exchange(sender.released, {})) done();
  Settle();
}

bool World::HoldsNothing() const {
  return pool->counts().used == 0 && ledger.counts().slots_used == 0 && ledger.counts().waiting_local == 0;
}

}  // namespace baton::testing
