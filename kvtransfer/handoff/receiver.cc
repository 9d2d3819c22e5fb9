#include "kvtransfer/handoff/receiver.h"

#include <algorithm>
#include <span>

#include "absl/strings/str_cat.h"

namespace baton::handoff {
namespace {

Outcome WriterLost(const absl::Status& why) {
  return Outcome(Cause::kPeerLost, absl::StrCat("the writer is lost: ", why.message()));
}

}  // namespace

absl::Status Receiver::Open(const AttemptKey& key) {
  if (attempts_.contains(key)) {
    return absl::AlreadyExistsError(absl::StrCat("attempt ", key.ToString(), " is open"));
  }
  if (draining_) return absl::UnavailableError("the decode worker is draining");
  if (int(attempts_.size()) >= config_.max_attempts) {
    return absl::ResourceExhaustedError(absl::StrCat(attempts_.size(), " attempts are open, the limit"));
  }
  if (!seen_.Admit(key)) {
    return absl::FailedPreconditionError(absl::StrCat("attempt ", key.ToString(), " or a later one was open before"));
  }
  attempts_[key] = Attempt{};
  return absl::OkStatus();
}

std::vector<Receiver::Action> Receiver::On(const Event& event, PageSource& pages) {
  Actions out;
  std::visit([&](const auto& e) { Handle(e, pages, &out); }, event);
  ServeQueue(pages, &out);
  return out;
}

void Receiver::Handle(const Close& close, PageSource& pages, Actions* out) {
  const auto it = attempts_.find(close.key);
  if (it == attempts_.end()) return;
  switch (it->second.state) {
    case State::kOpen:
    case State::kReceived:
      Erase(it);
      break;
    case State::kQueued:
      out->emplace_back(Send{it->second.peer, Refused{close.key, Cause::kRevoked, "the attempt was closed"}});
      Erase(it);
      break;
    case State::kGranted:
      it->second.state = State::kRevoking;
      ReleaseShared(it->second, pages);
      out->emplace_back(Send{it->second.peer, Revoke{close.key}});
      break;
    case State::kRevoking:
      break;
  }
}

void Receiver::Handle(const From& from, PageSource& pages, Actions* out) {
  if (!silent_.contains(from.peer)) return;
  SetSilent(from.peer, false, pages);  // we hear it
  std::visit(
      [&](const auto& m) {
        // The other messages are the receiver's own.
        if constexpr (requires { Receive(from.peer, m, pages, out); }) Receive(from.peer, m, pages, out);
      },
      from.message);
}

void Receiver::Handle(const PeerUp& up, PageSource&, Actions*) { silent_.try_emplace(up.peer, false); }

void Receiver::Handle(const PeerChanged& changed, PageSource& pages, Actions* out) {
  if (!silent_.contains(changed.peer)) return;
  if (changed.state == PeerState::kRevoked) {
    ForgetPeer(changed.peer, changed.why, pages, out);
  } else {
    SetSilent(changed.peer, changed.state != PeerState::kAlive, pages);
    if (changed.state == PeerState::kGivenUp) GiveUp(changed.peer, changed.why, pages, out);
  }
}

void Receiver::Handle(const LocalSequences& local, PageSource&, Actions*) {
  const int started = std::max(0, local.count - local_.count);
  if (const std::optional<AttemptKey> passed = OldestWaiting()) attempts_.at(*passed).bypassed += started;
  local_ = local;
}

void Receiver::Receive(PeerId peer, const Reserve& reserve, PageSource& pages, Actions* out) {
  const auto it = attempts_.find(reserve.key);
  if (it != attempts_.end() && it->second.state != State::kOpen && it->second.peer == peer) return;  // said twice
  if (it == attempts_.end() || it->second.state != State::kOpen) {
    out->emplace_back(Send{peer, Refused{reserve.key, Cause::kUnknownAttempt, "the attempt is not open"}});
    return;
  }
  it->second.peer = peer;
  it->second.tokens = reserve.tokens;
  it->second.page_hashes = reserve.page_hashes;
  const size_t full_pages = size_t(reserve.tokens) / size_t(config_.page_tokens);
  if (it->second.page_hashes.size() > full_pages) it->second.page_hashes.resize(full_pages);
  if (draining_) {
    return Refuse(it, Outcome(Cause::kDraining, "the decode worker is draining"), out);
  }
  if (const int64_t needed = PagesNeeded(reserve.tokens); needed > int64_t{config_.pages_total}) {
    return Refuse(it,
                  Outcome(Cause::kTooLarge, absl::StrCat(reserve.tokens, " tokens need ", needed, " pages, there are ",
                                                         config_.pages_total)),
                  out);
  }
  if (int(fifo_.size()) >= config_.max_queue) {
    return Refuse(it, Outcome(Cause::kOverloaded, absl::StrCat(fifo_.size(), " reservations wait, the limit")), out);
  }
  it->second.state = State::kQueued;
  fifo_.push_back(reserve.key);
  ServeQueue(pages, out);
  if (!fifo_.empty() && fifo_.back() == reserve.key) out->emplace_back(Send{peer, Queued{reserve.key}});
}

void Receiver::Receive(PeerId peer, const CancelReserve& cancel, PageSource&, Actions* out) {
  const auto it = FindReserved(cancel.key, peer);
  // A grant that crossed with this message is given back by Aborted: only that is a fence.
  if (it == attempts_.end() || it->second.state != State::kQueued) return;
  Erase(it);
  out->emplace_back(Failed{cancel.key, Outcome(Cause::kCancelled, "the writer withdrew its reservation")});
}

void Receiver::Receive(PeerId peer, const Commit& commit, PageSource& pages, Actions* out) {
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
  pages.Release(attempt.granted.pages);
  Erase(it);
  if (!revoking) out->emplace_back(Failed{commit.key, Outcome(Cause::kInternal, Fault::kPair, error)});
}

void Receiver::Receive(PeerId peer, const Aborted& aborted, PageSource& pages, Actions* out) {
  const auto it = FindReserved(aborted.key, peer);
  if (it == attempts_.end() || it->second.state == State::kReceived) return;
  const bool revoking = it->second.state == State::kRevoking;
  if (Holds(it->second)) pages.Release(it->second.granted.pages);
  Erase(it);
  if (revoking) return;
  if (aborted.cause == Cause::kFinished) {
    out->emplace_back(FinishedByWriter{aborted.key});
  } else {
    out->emplace_back(Failed{aborted.key, OutcomeOf(aborted)});
  }
}

std::string Receiver::CommitError(const Attempt& attempt, const Commit& commit) const {
  if (commit.tokens != attempt.tokens) {
    return absl::StrCat("Commit.tokens is ", commit.tokens, ", reserved were ", attempt.tokens);
  }
  uint64_t sum = 0;
  for (int layer = 0; layer < config_.layers; ++layer) {
    for (const PageId page : attempt.wanted_pages()) sum += BlockTag(layer, page);
  }
  if (commit.tag != CommitTag(commit.key, commit.tokens, sum)) {
    return "Commit.tag does not fit the grant: not every page was put, or not where it belongs";
  }
  return "";
}

Receiver::Attempts::iterator Receiver::FindReserved(const AttemptKey& key, PeerId peer) {
  const auto it = attempts_.find(key);
  if (it == attempts_.end() || it->second.state == State::kOpen || it->second.peer != peer) return attempts_.end();
  return it;
}

Receiver::Attempts::iterator Receiver::Erase(Attempts::iterator it) {
  if (it->second.state == State::kQueued) fifo_.erase(std::find(fifo_.begin(), fifo_.end(), it->first));
  if (Holds(it->second)) streams_.erase(StreamOf(it->first));
  return attempts_.erase(it);
}

void Receiver::Refuse(Attempts::iterator it, Outcome why, Actions* out) {
  const AttemptKey key = it->first;
  out->emplace_back(Send{it->second.peer, Refused{key, why.cause, why.detail, why.retry_after}});
  Erase(it);
  out->emplace_back(Failed{key, std::move(why)});
}

void Receiver::SetSilent(PeerId peer, bool silent, PageSource& pages) {
  bool& is_silent = silent_.at(peer);
  if (is_silent == silent) return;
  is_silent = silent;
  for (const auto& [key, attempt] : attempts_) {
    if (Holds(attempt) && attempt.peer == peer) pages.SetQuarantined(attempt.own_pages(), silent);
  }
}

void Receiver::GiveUp(PeerId peer, const absl::Status& why, PageSource& pages, Actions* out) {
  for (auto it = attempts_.begin(); it != attempts_.end();) {
    const auto current = it++;
    Attempt& attempt = current->second;
    if (attempt.peer != peer || (attempt.state != State::kQueued && attempt.state != State::kGranted)) continue;
    out->emplace_back(Failed{current->first, WriterLost(why)});
    if (attempt.state == State::kQueued) {
      Erase(current);
    } else {
      attempt.state = State::kRevoking;
      ReleaseShared(attempt, pages);
    }
  }
}

void Receiver::ForgetPeer(PeerId peer, const absl::Status& why, PageSource& pages, Actions* out) {
  SetSilent(peer, false, pages);
  silent_.erase(peer);
  for (auto it = attempts_.begin(); it != attempts_.end();) {
    Attempt& attempt = it->second;
    if (attempt.peer != peer || attempt.state == State::kOpen || attempt.state == State::kReceived) {
      ++it;
      continue;
    }
    if (Holds(attempt)) pages.Release(attempt.granted.pages);
    if (attempt.state != State::kRevoking) {
      out->emplace_back(Failed{it->first, WriterLost(why)});
    }
    it = Erase(it);
  }
}

void Receiver::ServeQueue(PageSource& pages, Actions* out) {
  if (fifo_.empty()) return;
  RefuseUnservable(out);
  int sequences = SequenceCount();
  for (size_t i = 0; i < fifo_.size() && sequences < config_.max_sequences;) {
    if (local_.next && !queued_first()) break;
    const auto it = attempts_.find(fifo_[i]);
    if (Silent(it->second.peer)) {
      ++i;
      continue;
    }
    if (Grant(it, std::min(config_.growth_watermark_pages, sequences), pages, out)) {
      bool last = false;  // somebody may not be passed once more
      for (size_t older = 0; older < i; ++older) {
        Attempt& passed = attempts_.at(fifo_[older]);
        if (!Silent(passed.peer) && ++passed.bypassed >= config_.max_bypass) last = true;
      }
      fifo_.erase(fifo_.begin() + ptrdiff_t(i));
      ++sequences;
      if (last) break;
    } else if (it->second.bypassed >= config_.max_bypass) {
      break;
    } else {
      ++i;
    }
  }
}

// Nobody waits for quarantined pages: the router may find a better place.
void Receiver::RefuseUnservable(Actions* out) {
  const int held = PagesOfSilentPeers();
  if (held == 0) return;
  const int usable = int(config_.pages_total) - held;
  const std::vector<AttemptKey> waiting = fifo_;
  for (const AttemptKey& key : waiting) {
    const auto it = attempts_.find(key);
    if (PagesNeeded(it->second.tokens) <= usable) continue;
    Refuse(
        it,
        Outcome(Cause::kQuarantined, absl::StrCat(PagesNeeded(it->second.tokens), " pages are needed, ", held, " of ",
                                                  config_.pages_total, " are granted to workers that are silent")),
        out);
  }
}

bool Receiver::Grant(Attempts::iterator it, int leave, PageSource& pages, Actions* out) {
  Attempt& attempt = it->second;
  GrantedPages granted = pages.Allocate(int(PagesNeeded(attempt.tokens)), attempt.page_hashes, leave);
  if (granted.pages.empty()) return false;
  attempt.state = State::kGranted;
  streams_[StreamOf(it->first)] = it->first;
  attempt.bypassed = 0;
  attempt.page_hashes.clear();
  attempt.granted = std::move(granted);
  attempt.writable.assign(attempt.wanted_pages().begin(), attempt.wanted_pages().end());
  std::sort(attempt.writable.begin(), attempt.writable.end());
  Granted message{it->first, {attempt.granted.pages.begin(), attempt.granted.pages.end() - 1}, {}};
  for (int i = attempt.granted.cached; i < int(message.pages.size()); ++i) message.wanted.push_back(i);
  out->emplace_back(Send{attempt.peer, std::move(message)});
  return true;
}

// Nobody writes to them: they need not wait for the writer's fence.
void Receiver::ReleaseShared(Attempt& attempt, PageSource& pages) {
  GrantedPages& granted = attempt.granted;
  const auto own = granted.pages.begin() + granted.cached;
  pages.Release(std::span(granted.pages.begin(), own));
  granted.pages.erase(granted.pages.begin(), own);
  granted.cached = 0;
}

bool Receiver::Silent(PeerId peer) const {
  const auto it = silent_.find(peer);
  return it != silent_.end() && it->second;
}

std::optional<AttemptKey> Receiver::OldestWaiting() const {
  const auto it = std::find_if(fifo_.begin(), fifo_.end(),
                               [this](const AttemptKey& key) { return !Silent(attempts_.at(key).peer); });
  return it == fifo_.end() ? std::nullopt : std::optional(*it);
}

bool Receiver::queued_first() const {
  const std::optional<AttemptKey> oldest = OldestWaiting();
  return oldest && attempts_.at(*oldest).bypassed >= std::max(1, config_.max_bypass);
}

bool Receiver::MayWrite(PeerId peer, StreamId stream, uint32_t first, uint32_t count) const {
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

Receiver::Counts Receiver::counts() const {
  Counts counts;
  for (const auto& [key, attempt] : attempts_) {
    switch (attempt.state) {
      case State::kOpen:
        ++counts.open;
        break;
      case State::kQueued:
        ++counts.queued;
        break;
      case State::kGranted:
        ++counts.granted;
        break;
      case State::kRevoking:
        ++counts.revoking;
        break;
      case State::kReceived:
        ++counts.received;
        break;
    }
  }
  return counts;
}

std::optional<Receiver::State> Receiver::state(const AttemptKey& key) const {
  const auto it = attempts_.find(key);
  if (it == attempts_.end()) return std::nullopt;
  return it->second.state;
}

int Receiver::SequenceCount() const {
  const Counts c = counts();
  return c.granted + c.received + local_.count;
}

int Receiver::PagesOfSilentPeers() const {
  size_t pages = 0;
  for (const auto& [key, attempt] : attempts_) {
    if (Holds(attempt) && Silent(attempt.peer)) pages += attempt.granted.pages.size();
  }
  return int(pages);
}

}  // namespace baton::handoff
