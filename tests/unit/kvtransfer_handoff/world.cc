#include "world.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace baton::handoff {
namespace {

constexpr int kPromptTokens = 2;
constexpr PageHash kSharedName = {1};

ReceiverConfig ModelReceiverConfig() {
  ReceiverConfig config;
  config.layers = 1;
  config.page_tokens = 1;
  config.pages_total = kPages + 1;
  config.max_attempts = kKeys;
  config.max_sequences = kRequests;
  config.max_queue = kKeys;
  config.max_bypass = 1;
  config.growth_watermark_pages = 0;
  return config;
}

constexpr WriterConfig kWriterConfig{.layers = 1, .page_tokens = 1, .peer_pages_total = kPages + 1};

}  // namespace

AttemptKey KeyOfIndex(int index) {
  return {.request = {0, uint64_t(index / kAttempts) + 1}, .attempt = uint32_t(index % kAttempts) + 1};
}

int IndexOfKey(const AttemptKey& key) { return int(key.request.low - 1) * kAttempts + int(key.attempt) - 1; }

const char* Name(StepKind kind) {
  constexpr const char* kNames[] = {
      "router starts an attempt of request",  // index: the request
      "router cancels request",
      "close arrives at decode for attempt",  // index: the attempt
      "abort arrives at prefill for attempt",
      "prefill puts for attempt",
      "prefill flushes ahead of the commit of attempt",
      "prefill commits attempt",
      "prefill finishes early attempt",
      "flush is done for attempt",
      "flush has failed for attempt",
      "decode gets the next message on attempt",
      "prefill gets the next message on attempt",
      "sequence ends, attempt",
      "decode sees silence on connection",  // index: the connection
      "decode sees life on connection",
      "decode gives up the peer of connection",
      "decode revokes the peer of connection",
      "prefill gives up the peer of connection",
      "prefill revokes the peer of connection",
      "prefill crashes",
      "prefill restarts",
      "decode crashes",
      "decode restarts",
  };
  static_assert(std::size(kNames) == size_t(StepKind::kCount));
  return kNames[size_t(kind)];
}

std::string Step::ToString() const { return absl::StrCat(handoff::Name(kind), " ", int(index)); }

int ModelPool::free_pages() const { return int(std::count(used_.begin(), used_.end(), false)); }

GrantedPages ModelPool::Allocate(int count, std::span<const PageHash> names, int leave) {
  if (names.size() != 1 || names[0] != kSharedName) misuse_ = "a reservation's page hashes were lost";
  --count;
  if (free_pages() < count + leave) return {};
  std::vector<PageId> pages;
  for (int i = 0; i < kPages && int(pages.size()) < count; ++i) {
    if (used_[size_t(i)]) continue;
    used_[size_t(i)] = true;
    pages.push_back(PageId(i));
  }
  if (mutation_ == Mutation::kNoGrowthPage) {
    used_[ToIndex(pages.back())] = false;
    pages.back() = pages.front();
  }
  pages.insert(pages.begin(), kSharedPage);
  ++holders_;
  return {.pages = std::move(pages), .cached = mutation_ == Mutation::kWantsSharedPage ? 0 : 1};
}

void ModelPool::Release(std::span<const PageId> pages) {
  for (PageId page : pages) {
    if (!used(page)) misuse_ = "a page was released twice";
    if (page == kSharedPage) {
      --holders_;
      continue;
    }
    used_[ToIndex(page)] = false;
    if (quarantined_[ToIndex(page)]) misuse_ = "a page was released out of quarantine";
  }
}

void ModelPool::SetQuarantined(std::span<const PageId> pages, bool quarantined) {
  for (PageId page : pages) {
    if (!used(page)) misuse_ = "a free page was quarantined";
    if (page == kSharedPage) misuse_ = "a page that others read was quarantined";
    if (page == kSharedPage) continue;
    quarantined_[ToIndex(page)] = quarantined;
    if (mutation_ == Mutation::kFreeOnSilence && quarantined) used_[ToIndex(page)] = false;
  }
}

const char* ModelPool::misuse() const { return mutation_ == Mutation::kNone ? misuse_ : nullptr; }

bool ModelPool::any_quarantined() const { return std::count(quarantined_.begin(), quarantined_.end(), true) > 0; }

World::World(Mutation mutation, std::array<uint8_t, kRequests> attempts)
    : mutation_(mutation),
      max_attempts_(attempts),
      receiver_config_(ModelReceiverConfig()),
      receiver_(receiver_config_) {
  const bool of_the_pool = mutation_ == Mutation::kNoGrowthPage || mutation_ == Mutation::kFreeOnSilence ||
                           mutation_ == Mutation::kWantsSharedPage;
  if (of_the_pool) pool_.set_mutation(mutation_);
}

// ------------------------------------------------------------------------------------------------ what can happen

std::vector<Step> World::Steps() const {
  std::vector<Step> steps;
  RouterSteps(&steps);
  PrefillSteps(&steps);
  NetworkSteps(&steps);
  FaultSteps(&steps);
  return steps;
}

void World::RouterSteps(std::vector<Step>* steps) const {
  for (uint8_t r = 0; r < kRequests; ++r) {
    const Phase phase = requests_[r].phase;
    const bool reachable = PrefillUp() && DecodeUp() && (UsableConnection() || CanConnect());
    if (phase == Phase::kIdle && reachable) steps->push_back({StepKind::kStart, r});
    if (phase == Phase::kActive) steps->push_back({StepKind::kCancel, r, /*fair=*/false});
  }
  for (uint8_t key = 0; key < kKeys; ++key) {
    if (attempt(key).close && DecodeUp()) steps->push_back({StepKind::kCloseArrives, key});
    if (attempt(key).abort && PrefillUp()) steps->push_back({StepKind::kAbortArrives, key});
    if (!attempt(key).running.empty() && DecodeUp()) steps->push_back({StepKind::kSequenceEnds, key});
  }
}

void World::PrefillSteps(std::vector<Step>* steps) const {
  if (!PrefillUp()) return;
  for (uint8_t key = 0; key < kKeys; ++key) {
    if (!attempt(key).handoff) continue;
    const Handoff& handoff = *attempt(key).handoff;
    const Writer::State state = handoff.writer.state();
    const bool puts_anyway = mutation_ == Mutation::kPutAfterRevoke && handoff.granted;
    if (!handoff.put && (state == Writer::State::kGranted || puts_anyway)) steps->push_back({StepKind::kPut, key});
    if (handoff.put && state == Writer::State::kGranted) {
      steps->push_back({StepKind::kFlushPuts, key});
      steps->push_back({StepKind::kCommit, key});
      steps->push_back({StepKind::kFinishEarly, key});
    }
    if (state == Writer::State::kFlushed) {
      steps->push_back({StepKind::kCommit, key});
      steps->push_back({StepKind::kFinishEarly, key});
    }
    if (state == Writer::State::kFlushing) {
      // A put that can neither land nor fail leaves with its connection.
      if (!UnderWay(key) || connection(key).decode_holds()) steps->push_back({StepKind::kFlushDone, key});
      // Of a peer that was given up, flushes end.
      const bool ends = connection(key).prefill_view == PeerState::kGivenUp;
      if (UnderWay(key) && (ends || !fault_)) steps->push_back({StepKind::kFlushFailed, key, /*fair=*/ends});
    }
  }
}

void World::NetworkSteps(std::vector<Step>* steps) const {
  for (uint8_t key = 0; key < kKeys; ++key) {
    if (!attempt(key).to_decode.empty() && DecodeUp()) steps->push_back({StepKind::kDeliverToDecode, key});
    if (!attempt(key).to_prefill.empty() && PrefillUp()) steps->push_back({StepKind::kDeliverToPrefill, key});
  }
  for (uint8_t i = 0; i < kConnections; ++i) {
    const Connection& c = connections_[i];
    if (!c.exists) continue;
    if (c.decode_holds() && DecodeUp()) {
      const bool silent = c.decode_view == PeerState::kSilent;
      const bool given_up = c.decode_view == PeerState::kGivenUp;
      const bool prefill_left = c.prefill_view >= PeerState::kGivenUp;
      if (!silent && !given_up && (!fault_ || !c.prefill_holds()))
        steps->push_back({StepKind::kDecodeSeesSilence, i, /*fair=*/false});
      if (silent && !prefill_left) steps->push_back({StepKind::kDecodeSeesAlive, i});
      // Prefill is gone, or it let go and said so.
      const bool proven = !c.prefill_holds() || (prefill_left && !ReadsSource(i));
      if (silent && !prefill_left) steps->push_back({StepKind::kDecodeGivesUp, i, /*fair=*/false});
      if (silent || given_up || proven) steps->push_back({StepKind::kDecodeRevokes, i, /*fair=*/proven});
    }
    if (c.prefill_holds() && PrefillUp()) {
      // Through shared memory it is given up, and nothing may ever prove that decode is gone.
      const bool given_up = c.prefill_view == PeerState::kGivenUp;
      const bool gone = !c.decode_holds() || c.prefill_closing;
      const bool lost = gone || c.decode_view == PeerState::kGivenUp;
      if (!given_up && (lost || !fault_)) steps->push_back({StepKind::kPrefillGivesUp, i, /*fair=*/lost});
      if (!given_up && (gone || !fault_)) steps->push_back({StepKind::kPrefillRevokes, i, /*fair=*/gone});
    }
  }
}

void World::FaultSteps(std::vector<Step>* steps) const {
  if (fault_) return;
  for (StepKind kind :
       {StepKind::kCrashPrefill, StepKind::kRestartPrefill, StepKind::kCrashDecode, StepKind::kRestartDecode}) {
    steps->push_back({kind, 0, /*fair=*/false});
  }
}

bool World::IsCurrent(int key) const {
  return requests_[size_t(key / kAttempts)].phase == Phase::kActive && CurrentKey(key / kAttempts) == key;
}

std::optional<uint8_t> World::UsableConnection() const {
  for (uint8_t i = 0; i < kConnections; ++i) {
    if (connections_[i].exists && connections_[i].prefill_view < PeerState::kGivenUp) return i;
  }
  return std::nullopt;
}

bool World::ReadsSource(int c) const {
  return std::any_of(puts_.begin(), puts_.end(),
                     [&](const PutInFlight& put) { return put.reads_source && attempt(put.key).connection == c; });
}

bool World::CanConnect() const { return !connections_[kConnections - 1].exists; }

bool World::UnderWay(int key) const {
  return std::any_of(puts_.begin(), puts_.end(), [&](const PutInFlight& put) { return put.key == key; });
}

// ------------------------------------------------------------------------------------------------ what then happens

void World::Take(const Step& step) {
  Act(step);
  Settle();
}

void World::Act(const Step& step) {
  const int i = step.index;
  switch (step.kind) {
    case StepKind::kStart:
      return Start(i);
    case StepKind::kCancel:
      return EndAttempt(i);
    case StepKind::kCloseArrives:
      return CloseAtDecode(i);
    case StepKind::kAbortArrives:
      attempt(i).abort = false;
      if (mutation_ == Mutation::kReleaseSourceAtAbort) attempt(i).handoff->source_released = true;
      return TellWriter(i, Writer::Abort{AbortReason::kCancelled});
    case StepKind::kPut:
      attempt(i).handoff->put = true;
      if (attempt(i).handoff->writer.state() != Writer::State::kGranted) {  // kPutAfterRevoke
        puts_.push_back({.key = step.index, .page = *attempt(i).handoff->granted, .before_flush = false});
        return;
      }
      return TellWriter(i, Writer::PutLayer{.layer = 0, .first_page = 0, .sources = {PageId(0), PageId(1)}});
    case StepKind::kFlushPuts:
      return TellWriter(i, Writer::FlushPuts{});
    case StepKind::kCommit:
      attempt(i).handoff->commit_asked = true;
      return TellWriter(i, Writer::CommitSequence{.output = {7}});
    case StepKind::kFinishEarly:
      TellWriter(i, Writer::Abort{AbortReason::kFinished});
      if (!IsCurrent(i)) return;
      requests_[size_t(i / kAttempts)].phase = Phase::kDone;
      attempt(i).close = true;
      return;
    case StepKind::kFlushDone:
      return FinishFlush(i);
    case StepKind::kFlushFailed:
      fault_ = true;
      DetachPuts(attempt(i).connection, i);
      if (mutation_ == Mutation::kFenceAfterFailedFlush) return TellWriter(i, Writer::FlushDone{});
      return TellWriter(i, Writer::FlushFailed{absl::UnavailableError("flush failed")});
    case StepKind::kDeliverToDecode:
      return DeliverToDecode(i);
    case StepKind::kDeliverToPrefill:
      return DeliverToPrefill(i);
    case StepKind::kSequenceEnds:
      return EndSequence(i);
    case StepKind::kDecodeSeesSilence:
      fault_ = true;
      connections_[step.index].decode_view = PeerState::kSilent;
      return TellReceiver(Receiver::PeerChanged{PeerId(i), PeerState::kSilent, {}});
    case StepKind::kDecodeSeesAlive:
      connections_[step.index].decode_view = PeerState::kAlive;
      return TellReceiver(Receiver::PeerChanged{PeerId(i), PeerState::kAlive, {}});
    case StepKind::kDecodeGivesUp:
      return DecodeGivesUp(i);
    case StepKind::kDecodeRevokes:
      return DecodeRevokes(i);
    case StepKind::kPrefillGivesUp:
      fault_ = true;
      return PrefillGivesUp(i);
    case StepKind::kPrefillRevokes:
      fault_ = true;
      return PrefillRevokes(i);
    case StepKind::kCrashPrefill:
    case StepKind::kRestartPrefill:
      fault_ = true;
      prefill_ = step.kind == StepKind::kCrashPrefill ? Process::kDead : Process::kUp;
      return PrefillDies();
    case StepKind::kCrashDecode:
    case StepKind::kRestartDecode:
      fault_ = true;
      decode_ = step.kind == StepKind::kCrashDecode ? Process::kDead : Process::kUp;
      return DecodeDies();
    case StepKind::kCount:
      return;
  }
}

void World::Start(int request) {
  ++requests_[size_t(request)].attempt;
  requests_[size_t(request)].phase = Phase::kActive;
  const int key = CurrentKey(request);
  if (!receiver_.Open(KeyOfIndex(key)).ok()) Note("decode refused to open an attempt");
  std::optional<uint8_t> connection = UsableConnection();
  if (!connection) {
    connection = connections_[0].exists ? 1 : 0;
    connections_[*connection] = {
        .exists = true, .prefill_closing = false, .prefill_view = PeerState::kAlive, .decode_view = PeerState::kAlive};
    TellReceiver(Receiver::PeerUp{PeerId(*connection)});
  }
  attempt(key).connection = *connection;
  attempt(key).handoff =
      Handoff{.writer = Writer(kWriterConfig, Reserve{KeyOfIndex(key), kPromptTokens, {kSharedName}}),
              .put = false,
              .commit_asked = false,
              .source_released = false,
              .granted = std::nullopt};
  TellWriter(key, Writer::Start{});
}

void World::EndAttempt(int request) {
  Request& r = requests_[size_t(request)];
  attempt(CurrentKey(request)).close = true;
  attempt(CurrentKey(request)).abort = true;
  r.phase = r.attempt < max_attempts_[size_t(request)] ? Phase::kIdle : Phase::kDone;
}

void World::TellWriter(int key, const Writer::Event& event) {
  std::optional<Handoff>& handoff = attempt(key).handoff;
  if (!handoff) return;
  for (const Writer::Action& action : handoff->writer.On(event)) {
    if (const auto* send = std::get_if<Writer::Send>(&action)) {
      SendToDecode(key, send->message);
    } else if (const auto* put = std::get_if<Writer::Put>(&action)) {
      if (put->destinations.size() != 1) Note("not the wanted page was put");
      puts_.push_back({.key = uint8_t(key), .page = put->destinations.front()});
    } else if (std::holds_alternative<Writer::Disconnect>(action)) {
      connection(key).prefill_closing = true;
    } else if (std::holds_alternative<Writer::Fail>(action)) {
      attempt(key).failed = true;
    }
  }
  if (handoff->writer.ended()) handoff.reset();
}

void World::TellReceiver(const Receiver::Event& event) {
  for (const Receiver::Action& action : receiver_.On(event, pool_)) Do(action);
}

void World::Do(const Receiver::Action& action) {
  if (const auto* send = std::get_if<Receiver::Send>(&action)) {
    SendToPrefill(IndexOfKey(handoff::KeyOf(send->message)), send->message);
    const auto* revoke = std::get_if<Revoke>(&send->message);
    if (revoke != nullptr && mutation_ == Mutation::kFreeAtRevoke) {
      TellReceiver(Receiver::From{send->peer, Aborted{revoke->key, AbortReason::kRevoked}});
    }
  } else if (const auto* received = std::get_if<Receiver::Received>(&action)) {
    const int key = IndexOfKey(received->key);
    if (UnderWay(key)) Note("a sequence was received before its pages were");
    if (!attempt(key).running.empty()) Note("a sequence was received twice");
    if (attempt(key).closed) Note("a closed attempt was received");
    if (received->pages.size() != 3 || received->pages[1] == received->pages[2]) Note("a sequence cannot grow");
    if (received->cached_pages != 1) Note("a sequence was received whose beginning was not here");
    attempt(key).running = received->pages;
  } else if (const auto* failed = std::get_if<Receiver::Failed>(&action)) {
    attempt(IndexOfKey(failed->key)).failed = true;
  }
}

void World::SendToDecode(int key, const Message& message) {
  const bool forgotten =
      (mutation_ == Mutation::kForgetCancelReserve && std::holds_alternative<CancelReserve>(message)) ||
      (mutation_ == Mutation::kForgetAborted && std::holds_alternative<Aborted>(message));
  if (connection(key).carries() && !forgotten) attempt(key).to_decode.push_back(message);
}

void World::SendToPrefill(int key, const Message& message) {
  const bool forgotten = (mutation_ == Mutation::kForgetCommitted && std::holds_alternative<Committed>(message)) ||
                         (mutation_ == Mutation::kForgetRevoke && std::holds_alternative<Revoke>(message));
  if (connection(key).carries() && !forgotten) attempt(key).to_prefill.push_back(message);
}

void World::DeliverToDecode(int key) {
  const Message message = attempt(key).to_decode.front();
  attempt(key).to_decode.erase(attempt(key).to_decode.begin());
  const bool keeps_grant = mutation_ == Mutation::kCommitKeepsGrant && std::holds_alternative<Commit>(message);
  const Receiver before = receiver_;
  connection(key).decode_view = PeerState::kAlive;
  TellReceiver(Receiver::From{PeerId(attempt(key).connection), message});
  if (keeps_grant) receiver_ = before;
}

void World::DeliverToPrefill(int key) {
  const Message message = attempt(key).to_prefill.front();
  attempt(key).to_prefill.erase(attempt(key).to_prefill.begin());
  if (std::optional<Handoff>& handoff = attempt(key).handoff) {
    if (const auto* granted = std::get_if<Granted>(&message)) handoff->granted = granted->pages.back();
    TellWriter(key, message);
  } else if (std::optional<Message> answer = Writer::AnswerToUnknown(message);
             answer && mutation_ != Mutation::kIgnoreUnknownGrant) {
    SendToDecode(key, *answer);
  }
}

void World::CloseAtDecode(int key) {
  attempt(key).close = false;
  attempt(key).closed = true;
  const bool granted = receiver_.state(KeyOfIndex(key)) == Receiver::State::kGranted;
  if (granted && mutation_ == Mutation::kCommitAfterClose) return;
  if (attempt(key).running.empty()) {
    TellReceiver(Receiver::Close{KeyOfIndex(key)});
  } else {
    EndSequence(key);
  }
}

void World::EndSequence(int key) {
  pool_.Release(attempt(key).running);
  attempt(key).running.clear();
  TellReceiver(Receiver::Close{KeyOfIndex(key)});
  if (IsCurrent(key)) requests_[size_t(key / kAttempts)].phase = Phase::kDone;
}

void World::FinishFlush(int key) {
  // The mutants do not wait: their puts stay under way.
  const bool waits =
      mutation_ != (attempt(key).handoff->commit_asked ? Mutation::kCommitBeforeFlush : Mutation::kAbortedBeforeFlush);
  if (waits) std::erase_if(puts_, [&](const PutInFlight& put) { return put.key == key && put.before_flush; });
  TellWriter(key, Writer::FlushDone{});
}

void World::DecodeGivesUp(int c) {
  connections_[size_t(c)].decode_view = PeerState::kGivenUp;
  for (Attempt& attempt : attempts_) {
    if (attempt.connection == c) attempt.to_decode.clear();
  }
  if (mutation_ == Mutation::kWaitForProof)
    return TellReceiver(Receiver::PeerChanged{PeerId(c), PeerState::kSilent, {}});
  TellReceiver(Receiver::PeerChanged{PeerId(c), PeerState::kGivenUp, {}});
}

void World::DecodeRevokes(int c) {
  connections_[size_t(c)].decode_view = PeerState::kRevoked;
  for (Attempt& attempt : attempts_) {
    if (attempt.connection == c) attempt.to_decode.clear();
  }
  std::erase_if(puts_, [&](const PutInFlight& put) { return !put.reads_source && attempt(put.key).connection == c; });
  if (mutation_ == Mutation::kKeepGrantsOfRevoked) return;
  TellReceiver(Receiver::PeerChanged{PeerId(c), PeerState::kRevoked, {}});
}

void World::PrefillGivesUp(int c) {
  connections_[size_t(c)].prefill_view = PeerState::kGivenUp;
  for (int key = 0; key < kKeys; ++key) {
    if (attempt(key).connection != c) continue;
    attempt(key).to_prefill.clear();
    if (mutation_ != Mutation::kWaitForProof) TellWriter(key, Writer::PeerGivenUp{absl::UnavailableError("given up")});
  }
}

void World::PrefillRevokes(int c) {
  connections_[size_t(c)].prefill_view = PeerState::kRevoked;
  DetachPuts(c, -1);
  for (int key = 0; key < kKeys; ++key) {
    if (attempt(key).connection != c) continue;
    attempt(key).to_prefill.clear();
    TellWriter(key, Writer::PeerRevoked{absl::UnavailableError("lost")});
  }
}

void World::DetachPuts(int c, int key) {
  for (PutInFlight& put : puts_) {
    if (attempt(put.key).connection == c && (key < 0 || put.key == key)) put.reads_source = false;
  }
  std::erase_if(puts_, [&](const PutInFlight& put) { return !put.reads_source && !CanLand(put); });
}

void World::PrefillDies() {
  for (Connection& c : connections_) c.prefill_view = PeerState::kRevoked;
  for (int key = 0; key < kKeys; ++key) {
    attempt(key).handoff.reset();
    attempt(key).to_prefill.clear();
    attempt(key).failed = true;  // the router's stream breaks
  }
  for (int c = 0; c < kConnections; ++c) DetachPuts(c, -1);
}

void World::DecodeDies() {
  receiver_ = Receiver(receiver_config_);
  pool_ = ModelPool();
  for (Connection& c : connections_) c.decode_view = PeerState::kRevoked;
  for (Attempt& attempt : attempts_) {
    attempt.to_decode.clear();
    attempt.running.clear();
    attempt.failed = true;
  }
  std::erase_if(puts_, [](const PutInFlight& put) { return !put.reads_source; });
}

// ------------------------------------------------------------------------------------------------ what settles at once

void World::Settle() {
  Forget();
  bool again = true;
  while (again) {
    again = SettleRouter();
    for (int key = 0; key < kKeys; ++key) again |= SettleMessages(key);
    Forget();
  }
}

// The router's reaction to a failure only sends its cancels on their way, which may take any time.
bool World::SettleRouter() {
  const bool pair_lost = prefill_ == Process::kDead || decode_ == Process::kDead;
  bool changed = false;
  for (int r = 0; r < kRequests; ++r) {
    Request& request = requests_[size_t(r)];
    if (request.phase == Phase::kActive && (pair_lost || attempt(CurrentKey(r)).failed)) {
      EndAttempt(r);
      changed = true;
    }
    if (request.phase == Phase::kIdle && pair_lost) {
      request.phase = Phase::kDone;
      changed = true;
    }
  }
  return changed;
}

bool World::SettleMessages(int key) {
  Attempt& a = attempt(key);
  if (!a.to_prefill.empty() && PrefillUp()) {
    // Without the handoff nothing but the message itself is left to happen at prefill; of the others an abort that
    // comes first has the same outcome.
    const Message& m = a.to_prefill.front();
    const bool settles = !a.handoff || std::holds_alternative<Queued>(m) || std::holds_alternative<Refused>(m) ||
                         std::holds_alternative<Committed>(m);
    if (settles) {
      DeliverToPrefill(key);
      return true;
    }
  }
  if (!a.to_decode.empty() && DecodeUp()) {
    // Without the attempt decode refuses or ignores; a grant is not given back by CancelReserve.
    const std::optional<Receiver::State> state = receiver_.state(KeyOfIndex(key));
    const bool ignored =
        std::holds_alternative<CancelReserve>(a.to_decode.front()) && state != Receiver::State::kQueued;
    if (!state || ignored) {
      DeliverToDecode(key);
      return true;
    }
  }
  return false;
}

void World::Forget() {
  for (int key = 0; key < kKeys; ++key) {
    Attempt& a = attempt(key);
    a.failed = a.failed && IsCurrent(key);
    a.abort = a.abort && a.handoff;
    if (!receiver_.state(KeyOfIndex(key))) a.close = a.closed = false;
    if (!a.handoff && !receiver_.state(KeyOfIndex(key)) && !UnderWay(key) && a.to_decode.empty()) a.connection = 0;
  }
  for (int i = 0; i < kConnections; ++i) {
    // What was given up and is not waited for any more is as good as revoked.
    Connection& c = connections_[size_t(i)];
    const bool waits = std::any_of(attempts_.begin(), attempts_.end(),
                                   [&](const Attempt& a) { return a.handoff && a.connection == i; });
    if (c.prefill_view == PeerState::kGivenUp && !waits && !ReadsSource(i)) c.prefill_view = PeerState::kRevoked;
  }
  for (Connection& c : connections_) c.prefill_closing = c.prefill_closing && (c.prefill_holds() || c.decode_holds());
}

// ------------------------------------------------------------------------------------------------ what must hold

std::string World::Violation() const {
  if (violation_ != nullptr) return violation_;
  if (pool_.misuse() != nullptr) return pool_.misuse();
  for (const PutInFlight& put : puts_) {
    if (CanLand(put)) {
      if (!pool_.used(put.page)) return "I1: a put can land in a free page";
      const PeerId peer = PeerId(attempt(put.key).connection);
      if (!receiver_.MayWrite(peer, StreamOf(KeyOfIndex(put.key)), ToIndex(put.page), 1)) {
        return "I1: a put can land in a page that is no longer granted to it";
      }
    }
    const std::optional<Handoff>& handoff = attempt(put.key).handoff;
    if (put.reads_source && (!handoff || handoff->source_released)) return "I1: a put reads a page that was given back";
  }
  for (int key = 0; key < kKeys; ++key) {
    const PeerId peer = PeerId(attempt(key).connection);
    if (receiver_.MayWrite(peer, StreamOf(KeyOfIndex(key)), ToIndex(kSharedPage), 1)) {
      return "I1: a page that others read may be written";
    }
  }
  for (const Attempt& attempt : attempts_) {
    for (PageId page : attempt.running) {
      if (!pool_.used(page)) return "I1: a running sequence's page is free";
    }
  }
  return Disagreement();
}

// When no message about an attempt is under way, and both sides hold its connection, they must agree about it.
std::string World::Disagreement() const {
  for (int key = 0; key < kKeys; ++key) {
    const Connection& c = connection(key);
    if (!c.carries() || c.prefill_closing) continue;
    if (!attempt(key).to_decode.empty() || !attempt(key).to_prefill.empty()) continue;
    const std::optional<Receiver::State> receiver = receiver_.state(KeyOfIndex(key));
    const std::optional<Handoff>& handoff = attempt(key).handoff;
    const Writer::State writer = handoff ? handoff->writer.state() : Writer::State::kEnded;
    const bool agree = [&] {
      switch (writer) {
        case Writer::State::kQueued:
          return receiver == Receiver::State::kQueued;
        case Writer::State::kGranted:
        case Writer::State::kFlushed:
          return receiver == Receiver::State::kGranted;
        case Writer::State::kFlushing:
          return receiver == Receiver::State::kGranted || receiver == Receiver::State::kRevoking;
        case Writer::State::kEnded:
          return !receiver || receiver == Receiver::State::kOpen || receiver == Receiver::State::kReceived;
        default:
          return false;  // waits for an answer that is not under way
      }
    }();
    if (!agree) return "I2: the two sides disagree about an attempt, and no message is under way";
  }
  return "";
}

std::string World::ViolationAtRest() const {
  for (const Request& request : requests_) {
    if (request.phase != Phase::kDone) return "I2: a request is never resolved";
  }
  for (const Attempt& attempt : attempts_) {
    if (attempt.handoff) return "I2: a writer never ends";
    if (attempt.close && decode_ != Process::kDead) return "I2: a close never arrives";
  }
  if (decode_ == Process::kDead) return "";
  if (receiver_.counts() != Receiver::Counts{}) return "I3: the receiver's table is not empty";
  if (pool_.free_pages() != kPages || pool_.holders() != 0) return "I3: pages are lost";
  if (pool_.any_quarantined()) return "I3: quarantine is not empty";
  if (!puts_.empty()) return "I3: a put is still under way";
  return "";
}

}  // namespace baton::handoff
