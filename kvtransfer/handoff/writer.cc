#include "kvtransfer/handoff/writer.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace baton::handoff {
namespace {

absl::Status StatusOf(const Refused& refused) {
  const std::string text =
      absl::StrCat("reservation refused, ", Name(refused.reason), refused.detail.empty() ? "" : ": ", refused.detail);
  switch (refused.reason) {
    case RefuseReason::kTooLarge:
      return absl::InvalidArgumentError(text);
    case RefuseReason::kQueueFull:
      return absl::ResourceExhaustedError(text);
    case RefuseReason::kDraining:
      return absl::UnavailableError(text);
    case RefuseReason::kUnknownAttempt:
      return absl::FailedPreconditionError(text);
  }
  return absl::InternalError(text);
}

absl::Status RevokedStatus() { return absl::CancelledError("the decode worker revoked the grant"); }

}  // namespace

std::vector<Writer::Action> Writer::On(const Event& event) {
  Actions out;
  if (!ended()) std::visit([&](const auto& e) { Handle(e, &out); }, event);
  return out;
}

std::optional<Message> Writer::AnswerToUnknown(const Message& message) {
  // Nothing was put under a grant that no handoff saw, so this is a fence. All other answers are to messages we sent
  // and need none.
  if (const auto* granted = std::get_if<Granted>(&message)) return Aborted{granted->key, AbortReason::kCancelled};
  return std::nullopt;
}

void Writer::Handle(const Start&, Actions* out) {
  if (state_ != State::kNew) return;
  state_ = State::kReserving;
  out->emplace_back(Send{reservation_});
}

void Writer::Handle(const Message& message, Actions* out) {
  std::visit(
      [&](const auto& m) {
        // The other messages are the writer's own.
        if constexpr (requires { Receive(m, out); }) Receive(m, out);
      },
      message);
}

void Writer::Receive(const Queued&, Actions* out) {
  if (state_ != State::kReserving) return;
  state_ = State::kQueued;
  out->emplace_back(ReportQueued{});
}

void Writer::Receive(const Granted& granted, Actions* out) {
  if (!Waiting()) return;
  if (absl::Status status = CheckGrant(granted); !status.ok()) {
    out->emplace_back(Send{Aborted{key(), AbortReason::kFailed}});
    End(Fail{std::move(status)}, out);
    return;
  }
  state_ = State::kGranted;
  pages_ = granted.pages;
  wanted_ = granted.wanted;
  out->emplace_back(ReportGranted{});
}

// The puts are one-sided: nobody else keeps us from writing outside of the peer's pool.
absl::Status Writer::CheckGrant(const Granted& granted) const {
  const size_t expected = (size_t(reservation_.tokens) + config_.page_tokens - 1) / config_.page_tokens;
  if (granted.pages.size() != expected) {
    return absl::InternalError(absl::StrCat("Granted.page_ids: ", granted.pages.size(), " pages, expected ", expected));
  }
  std::vector<PageId> sorted = granted.pages;
  std::sort(sorted.begin(), sorted.end());
  if (ToIndex(sorted.back()) >= config_.peer_pages_total) {
    return absl::InternalError(
        absl::StrCat("Granted.page_ids: page ", ToIndex(sorted.back()), ", the pool has ", config_.peer_pages_total));
  }
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    return absl::InternalError("Granted.page_ids: a page is named twice");
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

void Writer::Receive(const Refused& refused, Actions* out) {
  if (Waiting()) End(Fail{StatusOf(refused)}, out);
}

void Writer::Receive(const Committed& committed, Actions* out) {
  if (state_ != State::kCommitting) return;
  if (committed.error.empty()) {
    End(Finish{}, out);
  } else {
    End(Fail{absl::AbortedError(absl::StrCat("the decode worker dropped the sequence: ", committed.error))}, out);
  }
}

void Writer::Receive(const Revoke&, Actions* out) {
  if (Waiting() || state_ == State::kFlushed) {  // no put is under way
    out->emplace_back(Send{Aborted{key(), AbortReason::kRevoked}});
    End(Fail{RevokedStatus()}, out);
  } else {
    FlushAndAbort(AbortReason::kRevoked, out);
  }
  // While committing, the answer to Commit is under way.
}

void Writer::FlushAndAbort(AbortReason reason, Actions* out) {
  if (state_ == State::kGranted) {
    StartFlush(reason, out);
  } else if (state_ == State::kFlushing && next_ != AfterFlush::kAborted) {
    next_ = AfterFlush::kAborted;
    reason_ = reason;
  }
}

void Writer::Handle(const PutLayer& put, Actions* out) {
  // What does not fit is left out: the tag of Commit will then tell the receiver.
  const bool fits = put.layer >= 0 && put.layer < config_.layers && put.first_page >= 0 &&
                    put.sources.size() <= pages_.size() && size_t(put.first_page) <= pages_.size() - put.sources.size();
  if (state_ != State::kGranted || !fits) return;
  Put action{put.layer, {}, {}};
  const int end = put.first_page + int(put.sources.size());
  for (auto it = std::lower_bound(wanted_.begin(), wanted_.end(), put.first_page); it != wanted_.end() && *it < end;
       ++it) {
    action.sources.push_back(put.sources[size_t(*it - put.first_page)]);
    action.destinations.push_back(pages_[size_t(*it)]);
    tags_ += BlockTag(put.layer, pages_[size_t(*it)]);
  }
  if (!action.sources.empty()) out->emplace_back(std::move(action));
}

void Writer::Handle(const FlushPuts&, Actions* out) {
  if (state_ == State::kGranted) StartFlush(AfterFlush::kReport, out);
}

void Writer::Handle(const CommitSequence& commit, Actions* out) {
  if (state_ != State::kGranted && state_ != State::kFlushed) return;
  output_ = commit.output;
  if (state_ == State::kFlushed) return SendCommit(out);
  StartFlush(AfterFlush::kCommit, out);
}

void Writer::Handle(const Abort& abort, Actions* out) {
  aborted_ = true;
  if (Waiting()) {
    // Both withdraw the reservation; CancelReserve cannot say that the request is finished.
    const bool finished = abort.reason == AbortReason::kFinished;
    out->emplace_back(Send{finished ? Message(Aborted{key(), abort.reason}) : Message(CancelReserve{key()})});
    End(Release{}, out);
  } else if (state_ == State::kGranted) {
    StartFlush(abort.reason, out);
  } else if (state_ == State::kFlushing) {
    if (next_ != AfterFlush::kAborted) reason_ = abort.reason;
    next_ = AfterFlush::kAborted;
  } else {
    if (state_ == State::kFlushed) out->emplace_back(Send{Aborted{key(), abort.reason}});
    End(Release{}, out);
  }
}

void Writer::Handle(const FlushDone&, Actions* out) {
  if (state_ != State::kFlushing) return;
  switch (next_) {
    case AfterFlush::kReport:
      state_ = State::kFlushed;
      out->emplace_back(ReportFlushed{});
      return;
    case AfterFlush::kCommit:
      return SendCommit(out);
    case AfterFlush::kAborted:
      out->emplace_back(Send{Aborted{key(), reason_}});
      return EndUnfinished(RevokedStatus(), out);
  }
}

void Writer::SendCommit(Actions* out) {
  state_ = State::kCommitting;
  out->emplace_back(Send{Commit{.key = key(),
                                .tokens = reservation_.tokens,
                                .output = output_,
                                .tag = CommitTag(key(), reservation_.tokens, tags_)}});
}

void Writer::Handle(const FlushFailed& failed, Actions* out) {
  if (state_ != State::kFlushing) return;
  out->emplace_back(Disconnect{});
  EndUnfinished(failed.status, out);
}

void Writer::Handle(const PeerGivenUp& given_up, Actions* out) {
  if (state_ == State::kGranted || state_ == State::kFlushing) {
    FlushAndAbort(AbortReason::kRevoked, out);  // the flush fails, or what it says is not heard
  } else {
    EndUnfinished(given_up.why, out);
  }
}

void Writer::Handle(const PeerRevoked& revoked, Actions* out) { EndUnfinished(revoked.why, out); }

void Writer::StartFlush(AfterFlush next, Actions* out) {
  state_ = State::kFlushing;
  next_ = next;
  out->emplace_back(Flush{});
}

void Writer::StartFlush(AbortReason reason, Actions* out) {
  reason_ = reason;
  StartFlush(AfterFlush::kAborted, out);
}

void Writer::EndUnfinished(absl::Status why, Actions* out) {
  if (aborted_) {
    End(Release{}, out);
  } else {
    End(Fail{std::move(why)}, out);
  }
}

void Writer::End(Action last, Actions* out) {
  state_ = State::kEnded;
  out->emplace_back(std::move(last));
}

}  // namespace baton::handoff
