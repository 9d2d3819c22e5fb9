// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/handoff/receiver_machine.h"

#include <algorithm>
#include <cassert>
#include <span>

#include "absl/strings/str_cat.h"

namespace baton::handoff {
namespace {

Outcome WriterLost(const absl::Status& why) {
  return Outcome(Cause::kPeerLost, absl::StrCat("the writer is lost: ", why.message()));
}

}  // namespace

absl::Status ReceiverMachine::Open(const AttemptKey& key, absl::Time due) {
  if (attempts_.contains(key)) {
    return absl::AlreadyExistsError(absl::StrCat("attempt ", key.ToString(), " is open"));
  }
  if (draining_) return absl::UnavailableError("the decode worker is draining");
  if (int(attempts_.size()) >= config_.max_attempts) {
    return absl::ResourceExhaustedError(absl::StrCat(attempts_.size(), " attempts are open, the limit"));
  }
  if (!seen_.Admit(key)) {
    return absl::FailedPreconditionError(
        absl::StrCat("attempt ", key.ToString(), " or a later attempt of the request was open before"));
  }
  attempts_[key].due = due;
  return absl::OkStatus();
}

std::vector<ReceiverMachine::Action> ReceiverMachine::On(const Event& event, Admission& admission) {
  Actions out;
  std::visit([&](const auto& e) { Handle(e, admission, &out); }, event);
  CarryOutDecisions(admission, &out);
  return out;
}

void ReceiverMachine::Handle(const Close& close, Admission& admission, Actions* out) {
  const auto it = attempts_.find(close.key);
  if (it == attempts_.end()) return;
  switch (it->second.state) {
    case State::kOpen:
    case State::kReceived: Erase(it, admission); break;
    case State::kQueued:
      out->emplace_back(Send{it->second.peer, Refused{close.key, Cause::kRevoked, "the attempt was closed"}});
      Erase(it, admission);
      break;
    case State::kGranted:
      StartRevoking(it, admission);
      out->emplace_back(Send{it->second.peer, Revoke{close.key}});
      break;
    case State::kRevoking: break;
  }
}

void ReceiverMachine::Handle(const From& from, Admission& admission, Actions* out) {
  if (!silent_.contains(from.peer)) return;
  SetSilent(from.peer, false, admission);  // a message is a sign of life
  std::visit(
      [&](const auto& m) {
        // Ignores messages that only a receiver sends.
        if constexpr (requires { Receive(from.peer, m, admission, out); }) Receive(from.peer, m, admission, out);
      },
      from.message);
}

void ReceiverMachine::Handle(const PeerUp& up, Admission&, Actions*) { silent_.try_emplace(up.peer, false); }

void ReceiverMachine::Handle(const PeerChanged& changed, Admission& admission, Actions* out) {
  if (!silent_.contains(changed.peer)) return;
  if (changed.state == PeerState::kRevoked) {
    ForgetPeer(changed.peer, changed.why, admission, out);
  } else {
    SetSilent(changed.peer, changed.state != PeerState::kAlive, admission);
    if (changed.state == PeerState::kGivenUp) GiveUp(changed.peer, changed.why, admission, out);
  }
}

void ReceiverMachine::Receive(PeerId peer, const Reserve& reserve, Admission& admission, Actions* out) {
  const auto it = attempts_.find(reserve.key);
  if (it != attempts_.end() && it->second.state != State::kOpen && it->second.peer == peer)
    return;  // a repeated Reserve
  if (it == attempts_.end() || it->second.state != State::kOpen) {
    out->emplace_back(Send{peer, Refused{reserve.key, Cause::kUnknownAttempt, "the attempt is not open"}});
    return;
  }
  it->second.peer = peer;
  it->second.tokens = reserve.tokens;
  if (draining_) {
    return Refuse(it, Outcome(Cause::kDraining, "the decode worker is draining"), admission, out);
  }
  const int64_t needed = PagesNeeded(reserve.tokens);
  if (needed > int64_t{config_.pages_total}) {
    return Refuse(it,
                  Outcome(Cause::kTooLarge, absl::StrCat(reserve.tokens, " tokens need ", needed,
                                                         " pages, the pool has ", config_.pages_total)),
                  admission, out);
  }
  std::vector<PageHash> names = reserve.page_hashes;
  const auto full_pages = static_cast<size_t>(config_.layout->full_pages(reserve.tokens));
  if (names.size() > full_pages) names.resize(full_pages);
  const absl::Status waits =
      admission.Enqueue({.key = it->first, .due = it->second.due, .pages = int(needed), .names = std::move(names)});
  if (!waits.ok()) return Refuse(it, Outcome(Cause::kOverloaded, std::string(waits.message())), admission, out);
  it->second.state = State::kQueued;
  CarryOutDecisions(admission, out);
  if (state(reserve.key) == State::kQueued) out->emplace_back(Send{peer, Queued{reserve.key}});
}

void ReceiverMachine::Receive(PeerId peer, const CancelReserve& cancel, Admission& admission, Actions* out) {
  const auto it = FindReserved(cancel.key, peer);
  // If a grant crossed this message, the writer answers the grant with Aborted, which is a fence.
  if (it == attempts_.end() || it->second.state != State::kQueued) return;
  Erase(it, admission);
  out->emplace_back(Failed{cancel.key, Outcome(Cause::kCancelled, "the writer withdrew its reservation")});
}

void ReceiverMachine::Receive(PeerId peer, const Commit& commit, Admission& admission, Actions* out) {
  const auto it = FindReserved(commit.key, peer);
  if (it == attempts_.end() || !Holds(it->second)) {
    out->emplace_back(Send{peer, Committed{commit.key, "nothing is granted", Cause::kUnknownAttempt}});
    return;
  }
  Attempt& attempt = it->second;
  const bool revoking = attempt.state == State::kRevoking;
  const std::string error = revoking ? "revoked" : CommitError(attempt, commit);
  out->emplace_back(Send{peer, Committed{commit.key, error, revoking ? Cause::kRevoked : Cause::kInternal}});
  if (error.empty()) {
    attempt.state = State::kReceived;
    streams_.erase(StreamOf(commit.key));
    GrantedPages granted = std::exchange(attempt.granted, {});
    attempt.writable.clear();
    out->emplace_back(Received{commit.key, std::move(granted.pages), commit.tokens, granted.cached, commit.output});
    return;
  }
  admission.Release(attempt.granted.pages);
  Erase(it, admission);
  if (!revoking) out->emplace_back(Failed{commit.key, Outcome(Cause::kInternal, Fault::kPair, error)});
}

void ReceiverMachine::Receive(PeerId peer, const Aborted& aborted, Admission& admission, Actions* out) {
  const auto it = FindReserved(aborted.key, peer);
  if (it == attempts_.end() || it->second.state == State::kReceived) return;
  const bool revoking = it->second.state == State::kRevoking;
  if (Holds(it->second)) admission.Release(it->second.granted.pages);
  Erase(it, admission);
  if (revoking) return;
  if (aborted.cause == Cause::kFinished) {
    out->emplace_back(FinishedByWriter{aborted.key});
  } else {
    out->emplace_back(Failed{aborted.key, OutcomeOf(aborted)});
  }
}

std::string ReceiverMachine::CommitError(const Attempt& attempt, const Commit& commit) const {
  if (commit.tokens != attempt.tokens) {
    return absl::StrCat("Commit.tokens is ", commit.tokens, ", the reservation is for ", attempt.tokens);
  }
  const std::span<const PageId> wanted = WantedPages(attempt);
  const KvLayout& layout = *config_.layout;
  uint64_t sum = 0;
  for (int layer = 0; layer < layout.layers(); ++layer) {
    for (size_t i = layout.place(layer).group; i < wanted.size(); i += layout.groups()) {
      sum += BlockTag(layer, wanted[i]);
    }
  }
  if (commit.tag != CommitTag(commit.key, commit.tokens, sum)) {
    return "Commit.tag does not fit the grant: a page was not put, or was put in the wrong place";
  }
  return "";
}

ReceiverMachine::Attempts::iterator ReceiverMachine::FindReserved(const AttemptKey& key, PeerId peer) {
  const auto it = attempts_.find(key);
  if (it == attempts_.end() || it->second.state == State::kOpen || it->second.peer != peer) return attempts_.end();
  return it;
}

ReceiverMachine::Attempts::iterator ReceiverMachine::Erase(Attempts::iterator it, Admission& admission) {
  const State state = it->second.state;
  if (state == State::kQueued) admission.Withdraw(it->first);
  if (state == State::kGranted || state == State::kReceived) admission.Leave(it->first);
  if (Holds(it->second)) streams_.erase(StreamOf(it->first));
  return attempts_.erase(it);
}

void ReceiverMachine::Refuse(Attempts::iterator it, Outcome why, Admission& admission, Actions* out) {
  const AttemptKey key = it->first;
  out->emplace_back(Send{it->second.peer, Refused{key, why.cause, why.detail, why.retry_after}});
  Erase(it, admission);
  out->emplace_back(Failed{key, std::move(why)});
}

void ReceiverMachine::SetSilent(PeerId peer, bool silent, Admission& admission) {
  bool& is_silent = silent_.at(peer);
  if (is_silent == silent) return;
  is_silent = silent;
  for (const auto& [key, attempt] : attempts_) {
    if (attempt.peer != peer) continue;
    if (Holds(attempt)) admission.SetQuarantined(attempt.own_pages(), silent);
    if (attempt.state == State::kQueued) admission.Hold(key, silent);
  }
}

void ReceiverMachine::GiveUp(PeerId peer, const absl::Status& why, Admission& admission, Actions* out) {
  for (auto it = attempts_.begin(); it != attempts_.end();) {
    const auto current = it++;
    Attempt& attempt = current->second;
    if (attempt.peer != peer || (attempt.state != State::kQueued && attempt.state != State::kGranted)) continue;
    out->emplace_back(Failed{current->first, WriterLost(why)});
    if (attempt.state == State::kQueued) {
      Erase(current, admission);
    } else {
      StartRevoking(current, admission);
    }
  }
}

void ReceiverMachine::ForgetPeer(PeerId peer, const absl::Status& why, Admission& admission, Actions* out) {
  SetSilent(peer, false, admission);
  silent_.erase(peer);
  for (auto it = attempts_.begin(); it != attempts_.end();) {
    Attempt& attempt = it->second;
    if (attempt.peer != peer || attempt.state == State::kOpen || attempt.state == State::kReceived) {
      ++it;
      continue;
    }
    if (Holds(attempt)) admission.Release(attempt.granted.pages);
    if (attempt.state != State::kRevoking) {
      out->emplace_back(Failed{it->first, WriterLost(why)});
    }
    it = Erase(it, admission);
  }
}

void ReceiverMachine::CarryOutDecisions(Admission& admission, Actions* out) {
  for (Admission::Decision& decision : admission.TakeDecisions()) {
    const auto it = attempts_.find(decision.key);
    assert(it != attempts_.end() && it->second.state == State::kQueued);
    if (decision.pages.ok()) {
      Grant(it, *std::move(decision.pages), admission, out);
    } else {
      Refuse(it, Outcome(Cause::kQuarantined, std::string(decision.pages.status().message())), admission, out);
    }
  }
}

void ReceiverMachine::Grant(Attempts::iterator it, GrantedPages granted, Admission& admission, Actions* out) {
  Attempt& attempt = it->second;
  attempt.state = State::kGranted;
  streams_[StreamOf(it->first)] = it->first;
  attempt.granted = std::move(granted);
  const std::span<const PageId> wanted = WantedPages(attempt);
  attempt.writable.assign(wanted.begin(), wanted.end());
  std::sort(attempt.writable.begin(), attempt.writable.end());
  // The decision may be older than the writer's silence.
  if (Silent(attempt.peer)) admission.SetQuarantined(attempt.own_pages(), true);
  Granted message{
      it->first, {attempt.granted.pages.begin(), attempt.granted.pages.end() - config_.layout->groups()}, {}};
  for (int i = attempt.granted.cached; i < int(message.pages.size()); ++i) message.wanted.push_back(i);
  out->emplace_back(Send{attempt.peer, std::move(message)});
}

void ReceiverMachine::StartRevoking(Attempts::iterator it, Admission& admission) {
  GrantedPages& granted = it->second.granted;
  const auto own = granted.pages.begin() + granted.cached;
  admission.Release(std::span(granted.pages.begin(), own));
  granted.pages.erase(granted.pages.begin(), own);
  granted.cached = 0;
  it->second.state = State::kRevoking;
  admission.Leave(it->first);
}

bool ReceiverMachine::Silent(PeerId peer) const {
  const auto it = silent_.find(peer);
  return it != silent_.end() && it->second;
}

bool ReceiverMachine::MayWrite(PeerId peer, StreamId stream, uint32_t first, uint32_t count) const {
  const auto of_stream = streams_.find(stream);
  if (of_stream == streams_.end()) return false;
  const Attempt& attempt = attempts_.at(of_stream->second);
  if (attempt.peer != peer) return false;
  const auto index_below = [](PageId page, uint64_t index) { return ToIndex(page) < index; };
  const auto& pages = attempt.writable;
  const auto begin = std::lower_bound(pages.begin(), pages.end(), uint64_t{first}, index_below);
  const auto end = std::lower_bound(begin, pages.end(), uint64_t{first} + count, index_below);
  return uint64_t(end - begin) == count;
}

ReceiverMachine::Counts ReceiverMachine::counts() const {
  Counts counts;
  for (const auto& [key, attempt] : attempts_) {
    switch (attempt.state) {
      case State::kOpen: ++counts.open; break;
      case State::kQueued: ++counts.queued; break;
      case State::kGranted: ++counts.granted; break;
      case State::kRevoking: ++counts.revoking; break;
      case State::kReceived: ++counts.received; break;
    }
  }
  return counts;
}

std::optional<ReceiverMachine::State> ReceiverMachine::state(const AttemptKey& key) const {
  const auto it = attempts_.find(key);
  if (it == attempts_.end()) return std::nullopt;
  return it->second.state;
}

}  // namespace baton::handoff
