// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/handoff/writer_machine.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace baton::handoff {
namespace {

Outcome DecodeLost(absl::string_view why) {
  return Outcome(Cause::kPeerLost, absl::StrCat("the decode worker is lost: ", why));
}

}  // namespace

std::vector<WriterMachine::Action> WriterMachine::On(const Event& event) {
  Actions out;
  if (!ended()) std::visit([&](const auto& e) { Handle(e, &out); }, event);
  return out;
}

std::optional<Message> WriterMachine::AnswerToUnknown(const Message& message) {
  // Nothing was put under a grant that no handoff saw, so Aborted is a fence. No other message needs an answer.
  if (const auto* granted = std::get_if<Granted>(&message)) return Aborted{granted->key, Cause::kCancelled};
  return std::nullopt;
}

void WriterMachine::Handle(const Start&, Actions* out) {
  if (state_ != State::kNew) return;
  state_ = State::kReserving;
  out->emplace_back(Send{reservation_});
}

void WriterMachine::Handle(const Message& message, Actions* out) {
  std::visit(
      [&](const auto& m) {
        // Ignores messages that only a writer sends.
        if constexpr (requires { Receive(m, out); }) Receive(m, out);
      },
      message);
}

void WriterMachine::Receive(const Queued&, Actions* out) {
  if (state_ != State::kReserving) return;
  state_ = State::kQueued;
  out->emplace_back(ReportQueued{});
}

void WriterMachine::Receive(const Granted& granted, Actions* out) {
  if (!Waiting()) return;
  if (absl::Status status = CheckGrant(granted); !status.ok()) {
    out->emplace_back(Send{Aborted{key(), Cause::kInternal}});
    End(Fail{Outcome(Cause::kInternal, Fault::kPair, std::string(status.message()))}, out);
    return;
  }
  state_ = State::kGranted;
  pages_ = granted.pages;
  wanted_ = granted.wanted;
  out->emplace_back(ReportGranted{});
}

// Puts are one-sided: only this check keeps a put inside of the peer's pool.
absl::Status WriterMachine::CheckGrant(const Granted& granted) const {
  const auto expected = static_cast<size_t>(config_.layout->pages_for(reservation_.tokens));
  if (granted.pages.size() != expected) {
    return absl::InternalError(absl::StrCat("Granted.page_ids: ", granted.pages.size(), " pages, expected ", expected));
  }
  std::vector<PageId> sorted = granted.pages;
  std::sort(sorted.begin(), sorted.end());
  if (ToIndex(sorted.back()) >= config_.peer_pages_total) {
    return absl::InternalError(
        absl::StrCat("Granted.page_ids: page ", ToIndex(sorted.back()), ", expected below ", config_.peer_pages_total));
  }
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    return absl::InternalError("Granted.page_ids: the same page twice");
  }
  for (size_t i = 0; i < granted.wanted.size(); ++i) {
    const int index = granted.wanted[i];
    if (index < 0 || size_t(index) >= expected || (i > 0 && index <= granted.wanted[i - 1])) {
      return absl::InternalError(
          absl::StrCat("Granted.wanted: indexes must ascend and be below ", expected, ", got ", index));
    }
  }
  return absl::OkStatus();
}

void WriterMachine::Receive(const Refused& refused, Actions* out) {
  if (Waiting()) End(Fail{OutcomeOf(refused)}, out);
}

void WriterMachine::Receive(const Committed& committed, Actions* out) {
  if (state_ != State::kCommitting) return;
  if (committed.error.empty()) {
    End(Finish{}, out);
  } else {
    End(Fail{OutcomeOf(committed)}, out);
  }
}

void WriterMachine::Receive(const Revoke&, Actions* out) {
  if (Waiting() || state_ == State::kFlushed) {  // no put is under way
    abort_cause_ = Cause::kRevoked;
    out->emplace_back(Send{Aborted{key(), abort_cause_}});
    End(Fail{WhyAborted()}, out);
  } else {
    FlushAndAbort(Cause::kRevoked, out);
  }
}

void WriterMachine::FlushAndAbort(Cause cause, Actions* out) {
  if (state_ == State::kGranted) {
    StartFlush(cause, out);
  } else if (state_ == State::kFlushing && next_ != AfterFlush::kAborted) {
    next_ = AfterFlush::kAborted;
    abort_cause_ = cause;
  }
}

void WriterMachine::Handle(const PutLayer& put, Actions* out) {
  // Ignores a layer that does not fit. The receiver then finds a wrong tag in Commit.
  const bool fits = put.layer >= 0 && put.layer < config_.layout->layers() && put.first_page >= 0 &&
                    put.sources.size() <= pages_.size() && size_t(put.first_page) <= pages_.size() - put.sources.size();
  if (state_ != State::kGranted || !fits) return;
  const KvLayout& layout = *config_.layout;
  const int group = layout.place(put.layer).group;
  Put action{put.layer, {}, {}};
  const int end = put.first_page + int(put.sources.size());
  for (auto it = std::lower_bound(wanted_.begin(), wanted_.end(), put.first_page); it != wanted_.end() && *it < end;
       ++it) {
    if (*it % layout.groups() != group) continue;
    action.sources.push_back(put.sources[size_t(*it - put.first_page)]);
    action.destinations.push_back(pages_[size_t(*it)]);
    tags_ += BlockTag(put.layer, pages_[size_t(*it)]);
  }
  if (!action.sources.empty()) out->emplace_back(std::move(action));
}

void WriterMachine::Handle(const FlushPuts&, Actions* out) {
  if (state_ == State::kGranted) StartFlush(AfterFlush::kReport, out);
}

void WriterMachine::Handle(const CommitSequence& commit, Actions* out) {
  if (state_ != State::kGranted && state_ != State::kFlushed) return;
  output_ = commit.output;
  if (state_ == State::kFlushed) return SendCommit(out);
  StartFlush(AfterFlush::kCommit, out);
}

void WriterMachine::Handle(const Abort& abort, Actions* out) {
  aborted_ = true;
  if (Waiting()) {
    // CancelReserve cannot say that the request is finished.
    const bool finished = abort.cause == Cause::kFinished;
    out->emplace_back(Send{finished ? Message(Aborted{key(), abort.cause}) : Message(CancelReserve{key()})});
    End(Release{}, out);
  } else if (state_ == State::kGranted) {
    StartFlush(abort.cause, out);
  } else if (state_ == State::kFlushing) {
    if (next_ != AfterFlush::kAborted) abort_cause_ = abort.cause;
    next_ = AfterFlush::kAborted;
  } else {
    if (state_ == State::kFlushed) out->emplace_back(Send{Aborted{key(), abort.cause}});
    End(Release{}, out);
  }
}

void WriterMachine::Handle(const FlushDone&, Actions* out) {
  if (state_ != State::kFlushing) return;
  switch (next_) {
    case AfterFlush::kReport:
      state_ = State::kFlushed;
      out->emplace_back(ReportFlushed{});
      return;
    case AfterFlush::kCommit: return SendCommit(out);
    case AfterFlush::kAborted:
      out->emplace_back(Send{Aborted{key(), abort_cause_}});
      return EndUnfinished(WhyAborted(), out);
  }
}

void WriterMachine::SendCommit(Actions* out) {
  state_ = State::kCommitting;
  out->emplace_back(Send{Commit{.key = key(),
                                .tokens = reservation_.tokens,
                                .output = output_,
                                .tag = CommitTag(key(), reservation_.tokens, tags_)}});
}

void WriterMachine::Handle(const FlushFailed& failed, Actions* out) {
  if (state_ != State::kFlushing) return;
  out->emplace_back(Disconnect{});
  EndUnfinished(DecodeLost(failed.status.message()), out);
}

void WriterMachine::Handle(const PeerGivenUp& given_up, Actions* out) {
  if (state_ == State::kGranted || state_ == State::kFlushing) {
    lost_ = std::string(given_up.why.message());
    FlushAndAbort(Cause::kPeerLost, out);  // the flush fails, or the fence is lost
  } else {
    EndUnfinished(DecodeLost(given_up.why.message()), out);
  }
}

void WriterMachine::Handle(const PeerRevoked& revoked, Actions* out) {
  EndUnfinished(DecodeLost(revoked.why.message()), out);
}

void WriterMachine::StartFlush(AfterFlush next, Actions* out) {
  state_ = State::kFlushing;
  next_ = next;
  out->emplace_back(Flush{});
}

void WriterMachine::StartFlush(Cause cause, Actions* out) {
  abort_cause_ = cause;
  StartFlush(AfterFlush::kAborted, out);
}

Outcome WriterMachine::WhyAborted() const {
  if (abort_cause_ == Cause::kPeerLost) return DecodeLost(lost_);
  return Outcome(abort_cause_, "the decode worker revoked the grant");
}

void WriterMachine::EndUnfinished(Outcome why, Actions* out) {
  if (aborted_) {
    End(Release{}, out);
  } else {
    End(Fail{std::move(why)}, out);
  }
}

void WriterMachine::End(Action last, Actions* out) {
  state_ = State::kEnded;
  out->emplace_back(std::move(last));
}

}  // namespace baton::handoff
