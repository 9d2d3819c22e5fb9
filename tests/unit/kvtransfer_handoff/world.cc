// SPDX-License-Identifier: Apache-2.0
#include "world.h"

#include <algorithm>

namespace baton::handoff {
namespace {

constexpr int kPromptTokens = 2;

const KvLayout kLayout(1, {.page_tokens = 1});
const ReceiverConfig kReceiverConfig{.layout = &kLayout, .pages_total = kPages + 1, .max_attempts = kKeys};
const WriterConfig kWriterConfig{.layout = &kLayout, .peer_pages_total = kPages + 1};

}  // namespace

AttemptKey KeyOfIndex(int index) {
  return {.request = {0, uint64_t(index / kAttempts) + 1}, .attempt = uint32_t(index % kAttempts) + 1};
}

int IndexOfKey(const AttemptKey& key) { return int(key.request.low - 1) * kAttempts + int(key.attempt) - 1; }

World::World(Mutation mutation, std::array<uint8_t, kRequests> attempts)
    : mutation_(mutation), max_attempts_(attempts), receiver_config_(kReceiverConfig), receiver_(receiver_config_) {
  const bool of_the_pool = mutation_ == Mutation::kNoGrowthPage || mutation_ == Mutation::kFreeOnSilence ||
                           mutation_ == Mutation::kWantsSharedPage;
  if (of_the_pool) pool_.set_mutation(mutation_);
}

void World::Take(const Step& step) {
  Act(step);
  Settle();
}

void World::Act(const Step& step) {
  const int i = step.index;
  switch (step.kind) {
    case StepKind::kStart: return Start(i);
    case StepKind::kCancel: return EndAttempt(i);
    case StepKind::kCloseArrives: return CloseAtDecode(i);
    case StepKind::kAbortArrives:
      attempt(i).abort = false;
      if (mutation_ == Mutation::kReleaseSourceAtAbort) attempt(i).handoff->source_released = true;
      return TellWriter(i, WriterMachine::Abort{Cause::kCancelled});
    case StepKind::kPut:
      attempt(i).handoff->put = true;
      if (attempt(i).handoff->writer.state() != WriterMachine::State::kGranted) {  // kPutAfterRevoke
        puts_.push_back({.key = step.index, .page = *attempt(i).handoff->granted, .before_flush = false});
        return;
      }
      return TellWriter(i, WriterMachine::PutLayer{.layer = 0, .first_page = 0, .sources = {PageId(0), PageId(1)}});
    case StepKind::kFlushPuts: return TellWriter(i, WriterMachine::FlushPuts{});
    case StepKind::kCommit:
      attempt(i).handoff->commit_asked = true;
      return TellWriter(i, WriterMachine::CommitSequence{.output = {7}});
    case StepKind::kFinishEarly:
      TellWriter(i, WriterMachine::Abort{Cause::kFinished});
      if (!IsCurrent(i)) return;
      requests_[size_t(i / kAttempts)].phase = Phase::kDone;
      attempt(i).close = true;
      return;
    case StepKind::kFlushDone: return FinishFlush(i);
    case StepKind::kFlushFailed:
      fault_ = true;
      DetachPuts(attempt(i).connection, i);
      if (mutation_ == Mutation::kFenceAfterFailedFlush) return TellWriter(i, WriterMachine::FlushDone{});
      return TellWriter(i, WriterMachine::FlushFailed{absl::UnavailableError("flush failed")});
    case StepKind::kDeliverToDecode: return DeliverToDecode(i);
    case StepKind::kDeliverToPrefill: return DeliverToPrefill(i);
    case StepKind::kSequenceEnds: return EndSequence(i);
    case StepKind::kDecodeSeesSilence:
      fault_ = true;
      connections_[step.index].decode_view = PeerState::kSilent;
      return TellReceiver(ReceiverMachine::PeerChanged{PeerId(i), PeerState::kSilent, {}});
    case StepKind::kDecodeSeesAlive:
      connections_[step.index].decode_view = PeerState::kAlive;
      return TellReceiver(ReceiverMachine::PeerChanged{PeerId(i), PeerState::kAlive, {}});
    case StepKind::kDecodeGivesUp: return DecodeGivesUp(i);
    case StepKind::kDecodeRevokes: return DecodeRevokes(i);
    case StepKind::kPrefillGivesUp: fault_ = true; return PrefillGivesUp(i);
    case StepKind::kPrefillRevokes: fault_ = true; return PrefillRevokes(i);
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
    case StepKind::kCount: return;
  }
}

void World::Start(int request) {
  ++requests_[size_t(request)].attempt;
  requests_[size_t(request)].phase = Phase::kActive;
  const int key = CurrentKey(request);
  if (!receiver_.Open(KeyOfIndex(key), absl::Time()).ok()) Note("decode refused to open an attempt");
  std::optional<uint8_t> connection = UsableConnection();
  if (!connection) {
    connection = connections_[0].exists ? 1 : 0;
    connections_[*connection] = {
        .exists = true, .prefill_closing = false, .prefill_view = PeerState::kAlive, .decode_view = PeerState::kAlive};
    TellReceiver(ReceiverMachine::PeerUp{PeerId(*connection)});
  }
  attempt(key).connection = *connection;
  attempt(key).handoff =
      Handoff{.writer = WriterMachine(kWriterConfig, Reserve{KeyOfIndex(key), kPromptTokens, {kSharedName}}),
              .put = false,
              .commit_asked = false,
              .source_released = false,
              .granted = std::nullopt};
  TellWriter(key, WriterMachine::Start{});
}

void World::EndAttempt(int request) {
  Request& r = requests_[size_t(request)];
  attempt(CurrentKey(request)).close = true;
  attempt(CurrentKey(request)).abort = true;
  r.phase = r.attempt < max_attempts_[size_t(request)] ? Phase::kIdle : Phase::kDone;
}

void World::TellWriter(int key, const WriterMachine::Event& event) {
  std::optional<Handoff>& handoff = attempt(key).handoff;
  if (!handoff) return;
  for (const WriterMachine::Action& action : handoff->writer.On(event)) {
    if (const auto* send = std::get_if<WriterMachine::Send>(&action)) {
      SendToDecode(key, send->message);
    } else if (const auto* put = std::get_if<WriterMachine::Put>(&action)) {
      if (put->destinations.size() != 1) Note("not the wanted page was put");
      puts_.push_back({.key = uint8_t(key), .page = put->destinations.front()});
    } else if (std::holds_alternative<WriterMachine::Disconnect>(action)) {
      connection(key).prefill_closing = true;
    } else if (std::holds_alternative<WriterMachine::Fail>(action)) {
      attempt(key).failed = true;
    }
  }
  if (handoff->writer.ended()) handoff.reset();
}

void World::TellReceiver(const ReceiverMachine::Event& event) {
  for (const ReceiverMachine::Action& action : receiver_.On(event, pool_)) Do(action);
}

void World::Do(const ReceiverMachine::Action& action) {
  if (const auto* send = std::get_if<ReceiverMachine::Send>(&action)) {
    SendToPrefill(IndexOfKey(handoff::KeyOf(send->message)), send->message);
    const auto* revoke = std::get_if<Revoke>(&send->message);
    if (revoke != nullptr && mutation_ == Mutation::kFreeAtRevoke) {
      TellReceiver(ReceiverMachine::From{send->peer, Aborted{revoke->key, Cause::kRevoked}});
    }
  } else if (const auto* received = std::get_if<ReceiverMachine::Received>(&action)) {
    const int key = IndexOfKey(received->key);
    if (UnderWay(key)) Note("a sequence was received before its pages were");
    if (!attempt(key).running.empty()) Note("a sequence was received twice");
    if (attempt(key).closed) Note("a closed attempt was received");
    if (received->pages.size() != 3 || received->pages[1] == received->pages[2]) Note("a sequence cannot grow");
    if (received->cached_pages != 1) Note("a sequence was received whose beginning was not here");
    attempt(key).running = received->pages;
  } else if (const auto* failed = std::get_if<ReceiverMachine::Failed>(&action)) {
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
  const ReceiverMachine before = receiver_;
  connection(key).decode_view = PeerState::kAlive;
  TellReceiver(ReceiverMachine::From{PeerId(attempt(key).connection), message});
  if (keeps_grant) receiver_ = before;
}

void World::DeliverToPrefill(int key) {
  const Message message = attempt(key).to_prefill.front();
  attempt(key).to_prefill.erase(attempt(key).to_prefill.begin());
  if (std::optional<Handoff>& handoff = attempt(key).handoff) {
    if (const auto* granted = std::get_if<Granted>(&message)) handoff->granted = granted->pages.back();
    TellWriter(key, message);
  } else if (std::optional<Message> answer = WriterMachine::AnswerToUnknown(message);
             answer && mutation_ != Mutation::kIgnoreUnknownGrant) {
    SendToDecode(key, *answer);
  }
}

void World::CloseAtDecode(int key) {
  attempt(key).close = false;
  attempt(key).closed = true;
  const bool granted = receiver_.state(KeyOfIndex(key)) == ReceiverMachine::State::kGranted;
  if (granted && mutation_ == Mutation::kCommitAfterClose) return;
  if (attempt(key).running.empty()) {
    TellReceiver(ReceiverMachine::Close{KeyOfIndex(key)});
  } else {
    EndSequence(key);
  }
}

void World::EndSequence(int key) {
  pool_.Release(attempt(key).running);
  attempt(key).running.clear();
  TellReceiver(ReceiverMachine::Close{KeyOfIndex(key)});
  if (IsCurrent(key)) requests_[size_t(key / kAttempts)].phase = Phase::kDone;
}

void World::FinishFlush(int key) {
  // The mutants do not wait: their puts stay under way.
  const bool waits =
      mutation_ != (attempt(key).handoff->commit_asked ? Mutation::kCommitBeforeFlush : Mutation::kAbortedBeforeFlush);
  if (waits) std::erase_if(puts_, [&](const PutInFlight& put) { return put.key == key && put.before_flush; });
  TellWriter(key, WriterMachine::FlushDone{});
}

void World::DecodeGivesUp(int c) {
  connections_[size_t(c)].decode_view = PeerState::kGivenUp;
  for (Attempt& attempt : attempts_) {
    if (attempt.connection == c) attempt.to_decode.clear();
  }
  if (mutation_ == Mutation::kWaitForProof)
    return TellReceiver(ReceiverMachine::PeerChanged{PeerId(c), PeerState::kSilent, {}});
  TellReceiver(ReceiverMachine::PeerChanged{PeerId(c), PeerState::kGivenUp, {}});
}

void World::DecodeRevokes(int c) {
  connections_[size_t(c)].decode_view = PeerState::kRevoked;
  for (Attempt& attempt : attempts_) {
    if (attempt.connection == c) attempt.to_decode.clear();
  }
  std::erase_if(puts_, [&](const PutInFlight& put) { return !put.reads_source && attempt(put.key).connection == c; });
  if (mutation_ == Mutation::kKeepGrantsOfRevoked) return;
  TellReceiver(ReceiverMachine::PeerChanged{PeerId(c), PeerState::kRevoked, {}});
}

void World::PrefillGivesUp(int c) {
  connections_[size_t(c)].prefill_view = PeerState::kGivenUp;
  for (int key = 0; key < kKeys; ++key) {
    if (attempt(key).connection != c) continue;
    attempt(key).to_prefill.clear();
    if (mutation_ != Mutation::kWaitForProof)
      TellWriter(key, WriterMachine::PeerGivenUp{absl::UnavailableError("given up")});
  }
}

void World::PrefillRevokes(int c) {
  connections_[size_t(c)].prefill_view = PeerState::kRevoked;
  DetachPuts(c, -1);
  for (int key = 0; key < kKeys; ++key) {
    if (attempt(key).connection != c) continue;
    attempt(key).to_prefill.clear();
    TellWriter(key, WriterMachine::PeerRevoked{absl::UnavailableError("lost")});
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
  receiver_ = ReceiverMachine(receiver_config_);
  pool_ = ModelPool();
  for (Connection& c : connections_) c.decode_view = PeerState::kRevoked;
  for (Attempt& attempt : attempts_) {
    attempt.to_decode.clear();
    attempt.running.clear();
    attempt.failed = true;
  }
  std::erase_if(puts_, [](const PutInFlight& put) { return !put.reads_source; });
}

}  // namespace baton::handoff
