// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/ucx/ucx_peer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {
namespace {

// Longest wait for the peer's goodbye.
constexpr absl::Duration kFarewell = absl::Milliseconds(100);
constexpr size_t kMinQueuedBytes = 64 << 20;
constexpr size_t kMaxStreams = 1 << 16;

}  // namespace

UcxPeer::UcxPeer(UcxPeerContext* context, PeerId id, std::unique_ptr<UcxChannel> channel, ConnectDone connected)
    : context_(context),
      id_(id),
      is_client_(connected != nullptr),
      connected_(std::move(connected)),
      channel_(std::move(channel)),
      puts_(channel_.get()),
      open_by_(SteadyTime::Now() + context->options.connect_timeout),
      liveness_(context->options.silent_after, context->options.peer_timeout, SteadyTime::Now()) {
  // The client sends first: the server's frames might arrive before the client knows the session.
  if (is_client_) channel_->Send(FrameType::kIdentity, std::string(AsPayload(context_->identity)));
}

void UcxPeer::OnFrame(const FrameHeader& header, std::string_view payload) {
  if (phase_ == Phase::kGone) return;
  const bool in_order = header.sequence == next_sequence_++;
  if (channel_->closing()) {
    if (in_order && header.type == FrameType::kGoodbye) OnGoodbye(payload);
    return;
  }
  if (!in_order) return OnUnexpected("a frame out of order");
  liveness_.Heard(SteadyTime::Now());
  if (open()) SetState(PeerState::kAlive);
  if (header.type == FrameType::kGoodbye) return OnGoodbye(payload);
  if (header.type == FrameType::kGoodbyeAck) {
    if (phase_ == Phase::kFarewell) phase_ = Phase::kAnswered;
    context_->unmapped_is_known(session());
  } else if (phase_ < Phase::kOpen) {
    if (!OnNegotiation(header, payload)) OnUnexpected("an unexpected frame during negotiation");
  } else if (phase_ == Phase::kOpen) {
    OnOpenFrame(header, payload);
  }
}

// ------------------------------------------------------------------------------------------------ becoming open

bool UcxPeer::OnNegotiation(const FrameHeader& header, std::string_view payload) {
  if (header.type == FrameType::kHeartbeat) return true;
  if (phase_ == Phase::kIdentity && header.type == FrameType::kIdentity) {
    OnIdentity(payload);
  } else if (phase_ == Phase::kOffer && header.type == FrameType::kOffer) {
    OnOffer(payload);
  } else if (phase_ == Phase::kReady && header.type == FrameType::kReady) {
    if (header.a == 0) may_map_ = false;
    Open();
  } else {
    return false;
  }
  return true;
}

void UcxPeer::OnIdentity(std::string_view payload) {
  theirs_ = FromPayload<Identity>(payload);
  if (!theirs_.has_value()) return OnUnexpected("a malformed identity");
  puts_.set_region_bytes(theirs_->region_bytes);
  if (!is_client_) channel_->Send(FrameType::kIdentity, std::string(AsPayload(context_->identity)));
  absl::StatusOr<RegionOffer> offer = MakeOffer(*theirs_);
  if (offer.ok()) {
    may_map_ = true;
    channel_->Send(FrameType::kOffer, std::string(AsPayload(*offer)));
  } else {
    no_shared_memory_ = offer.status();
    channel_->Send(FrameType::kOffer);
  }
  phase_ = Phase::kOffer;
}

// Offers the region only to a peer whose death is visible: nothing else ends the peer's access.
absl::StatusOr<RegionOffer> UcxPeer::MakeOffer(const Identity& theirs) {
  if (context_->identity.shares_memory == 0 || theirs.shares_memory == 0) {
    return absl::FailedPreconditionError("shared memory is disabled");
  }
  BATON_RETURN_IF_ERROR(CheckSameHost(context_->identity, theirs));
  BATON_ASSIGN_OR_RETURN(process_, ProcessWatch::Open(theirs.pid, theirs.start_time));
  context_->watch(process_->fd());
  if (context_->region == nullptr) return absl::FailedPreconditionError("no region is registered");
  return context_->region->offer();
}

void UcxPeer::OnOffer(std::string_view payload) {
  if (!payload.empty() && context_->identity.shares_memory != 0) {
    const std::optional<RegionOffer> offer = FromPayload<RegionOffer>(payload);
    if (!offer.has_value()) return OnUnexpected("a malformed offer");
    absl::StatusOr<PeerRegion> region =
        PeerRegion::Map(static_cast<pid_t>(theirs_->pid), *offer, theirs_->region_bytes);
    if (region.ok()) {
      puts_.UseSharedMemory(*std::move(region));
    } else {
      no_shared_memory_ = region.status();
    }
  }
  const bool has_region = theirs_->region_bytes > 0;
  if (context_->options.path == "shm" && has_region && !puts_.uses_shared_memory()) {
    return Leave(absl::FailedPreconditionError(
        Concat("path shm is required, but ", no_shared_memory_.ok() ? "the peer does not offer shared memory"
                                                                    : FromAbsl(no_shared_memory_.message()))));
  }
  channel_->Send(FrameType::kReady, "", puts_.uses_shared_memory() ? 1 : 0);
  phase_ = Phase::kReady;
}

void UcxPeer::Open() {
  phase_ = Phase::kOpen;
  was_open_ = true;
  context_->set_path_name(id_, puts_.uses_shared_memory() ? "ucx:shm" : context_->network_path);
  const ConnectDone done = std::exchange(connected_, nullptr);
  if (context_->events == nullptr) return;
  if (done != nullptr) {
    done(id_);
  } else {
    context_->events->OnPeerAccepted(id_);
  }
}

// ------------------------------------------------------------------------------------------------ open

void UcxPeer::OnOpenFrame(const FrameHeader& header, std::string_view payload) {
  switch (header.type) {
    case FrameType::kHeartbeat: return;
    case FrameType::kMessage: return OnMessagePart(header, payload);
    case FrameType::kPut: return OnPut(header, payload);
    case FrameType::kFlush: return OnFlush(header);
    case FrameType::kUnmapped: return context_->peer_unmapped(*theirs_, header.a);
    case FrameType::kFlushed:
      if (!puts_.OnFlushed(header.a)) OnUnexpected("an answer to a flush that was not sent");
      return;
    default: return OnUnexpected("an unexpected frame on an open connection");
  }
}

void UcxPeer::Send(std::string message) {
  const size_t limit = context_->options.max_message_bytes;
  if (message.size() > limit) {
    return Leave(
        absl::InvalidArgumentError(absl::StrCat("a message has ", message.size(), " bytes, expected at most ", limit)));
  }
  const size_t max_queued_bytes = std::max(kMinQueuedBytes, 4 * limit);
  if (channel_->queued_bytes() + message.size() > max_queued_bytes) {
    return Leave(absl::ResourceExhaustedError(
        absl::StrCat("more than ", max_queued_bytes, " bytes of messages wait for a peer that does not read")));
  }
  channel_->SendMessage(std::move(message));
}

void UcxPeer::Flush(StreamId stream, PutQueue::FlushDone done) {
  if (open()) return puts_.Flush(stream, std::move(done));
  const auto fail = [done = std::move(done), id = id_](const absl::Status& /*why*/) {
    done(absl::UnavailableError(absl::StrCat("peer ", static_cast<uint64_t>(id), " is not connected")));
  };
  // Puts in progress still read local memory: the flush is done only after Unmap.
  if (phase_ == Phase::kLeaving) return puts_.Flush(stream, fail);
  fail(why_);
}

void UcxPeer::OnMessagePart(const FrameHeader& header, std::string_view part) {
  const uint64_t total = header.a;
  if (total > context_->options.max_message_bytes) return OnUnexpected("a message longer than max_message_bytes");
  const bool fits = header.b == message_.size() && part.size() <= total - message_.size();
  if (!fits || (part.empty() && total > 0)) return OnUnexpected("a message part with a wrong offset or size");
  if (part.size() == total) {
    if (context_->events != nullptr) context_->events->OnMessage(id_, part);
    return;
  }
  if (message_.empty()) message_.reserve(total);
  message_.append(part);
  if (message_.size() < total) return;
  const std::string whole = std::exchange(message_, "");
  if (context_->events != nullptr) context_->events->OnMessage(id_, whole);
}

// The peer's bytes are written only here: after Leave nothing of the peer lands.
void UcxPeer::OnPut(const FrameHeader& header, std::string_view data) {
  const TransportMemory region = context_->region == nullptr ? TransportMemory{} : context_->region->memory();
  const bool inside = data.size() <= region.bytes && header.b <= region.bytes - data.size();
  if (data.empty() || !inside) return OnUnexpected("a write outside of our region");
  if (context_->events == nullptr || !context_->events->AllowWrite(id_, header.a, header.b, data.size())) {
    return Leave(absl::PermissionDeniedError(
        absl::StrCat("the peer's write to [", header.b, ", +", data.size(), ") is not allowed")));
  }
  if (bytes_landed_.size() >= kMaxStreams && bytes_landed_.count(header.a) == 0) {
    return OnUnexpected("puts in too many streams at once");
  }
  std::memcpy(static_cast<std::byte*>(region.data) + header.b, data.data(), data.size());
  bytes_landed_[header.a] += data.size();
}

void UcxPeer::OnFlush(const FrameHeader& header) {
  const auto it = bytes_landed_.find(header.a);
  const uint64_t landed = it == bytes_landed_.end() ? 0 : it->second;
  if (it != bytes_landed_.end()) bytes_landed_.erase(it);
  if (landed != header.b) return OnUnexpected("a flush whose byte count differs from the bytes received");
  channel_->Send(FrameType::kFlushed, "", header.a);
}

void UcxPeer::SetState(PeerState state, const absl::Status& why) {
  if (state_ == state) return;
  state_ = state;
  if (context_->events != nullptr) context_->events->OnPeerState(id_, state, why);
}

void UcxPeer::Tick(SteadyTime now, absl::Duration stall) {
  liveness_.Forgive(stall, now);
  if (phase_ < Phase::kOpen) {
    open_by_ = open_by_ + stall;
    if (now >= open_by_) {
      Leave(absl::DeadlineExceededError(
          absl::StrCat("the peer was not ready within ", absl::FormatDuration(context_->options.connect_timeout))));
    }
    return;
  }
  if (!open()) return;
  channel_->SendHeartbeat();
  switch (liveness_.Check(now)) {
    case Liveness::Verdict::kAlive: break;
    case Liveness::Verdict::kSilent: SetState(PeerState::kSilent); break;
    case Liveness::Verdict::kExpired:
      SetState(PeerState::kSilent);
      Leave(absl::DeadlineExceededError(
          absl::StrCat("the peer was not heard for ", absl::FormatDuration(context_->options.peer_timeout))));
      break;
  }
}

// ------------------------------------------------------------------------------------------------ leaving

void UcxPeer::OnGoodbye(std::string_view why) {
  end_ = std::max(end_, PeerEnd::kGoodbye);
  channel_->Send(FrameType::kGoodbyeAck);
  Leave(absl::UnavailableError(
      Concat("the peer closed the connection: ", absl::CHexEscape(ToAbsl(why.substr(0, kMaxGoodbyeBytes))))));
}

void UcxPeer::OnUnmapped() {
  end_ = std::max(end_, PeerEnd::kGoodbye);
  Leave(absl::UnavailableError("the peer reports that it closed this connection"));
}

void UcxPeer::Leave(const absl::Status& why) {
  if (phase_ >= Phase::kLeaving) return;
  phase_ = Phase::kLeaving;
  why_ = why;
  left_at_ = SteadyTime::Now();
  context_->advance_after(kFarewell);
  puts_.Stop();
  channel_->DropQueued();
  message_.clear();
  bytes_landed_.clear();
}

bool UcxPeer::RevokedIsProven() const { return !was_open_ || !may_map_ || end_ != PeerEnd::kNone; }

bool UcxPeer::FarewellIsOver(SteadyTime now) const {
  if (channel_->failed() || end_ == PeerEnd::kProcessDied) return true;
  if (end_ == PeerEnd::kGoodbye && phase_ == Phase::kAnswered) return true;
  // A goodbye that cannot leave waits for peer_timeout: without the goodbye, a slow peer would notice only our silence.
  return now >= left_at_ + (channel_->idle() ? kFarewell : context_->options.peer_timeout);
}

void UcxPeer::CheckProcess() {
  if (process_.has_value() && process_->Dead()) end_ = PeerEnd::kProcessDied;
}

bool UcxPeer::Advance() {
  if (phase_ == Phase::kGone) return false;
  const bool sent = channel_->Pump();
  if (phase_ < Phase::kLeaving) {
    if (channel_->failed()) {
      Leave(channel_->failure());
    } else if (end_ == PeerEnd::kProcessDied) {
      Leave(absl::UnavailableError("the peer's process is dead"));
    } else {
      const bool put = open() && puts_.Pump();
      return sent || put || (open() && is_client_ && context_->options.prefault && puts_.Prepare());
    }
  }
  return AdvanceLeaving(SteadyTime::Now()) || sent;
}

bool UcxPeer::AdvanceLeaving(SteadyTime now) {
  bool worked = false;
  if (was_open_ && state_ != PeerState::kGivenUp) {
    CheckProcess();  // a dead peer is revoked at once
    if (!RevokedIsProven()) SetState(PeerState::kGivenUp, why_);
  }
  if (phase_ == Phase::kLeaving) {
    if (puts_.uses_shared_memory()) context_->unmapped(*theirs_, session());
    puts_.Unmap();
    phase_ = Phase::kFarewell;  // before the callbacks: a callback may call Flush again
    if (context_->events != nullptr) puts_.FailFlushes(why_);
    channel_->Send(FrameType::kGoodbye, std::string(FromAbsl(why_.message()).substr(0, kMaxGoodbyeBytes)));
    worked = true;
  }
  if (!channel_->closing() && FarewellIsOver(now) && (RevokedIsProven() || channel_->failed())) {
    channel_->Close();
    worked = true;
  }
  if (!drained() || !RevokedIsProven()) return worked;
  phase_ = Phase::kGone;
  const ConnectDone done = std::exchange(connected_, nullptr);
  if (context_->events == nullptr) return true;
  if (done != nullptr) done(why_);
  if (was_open_) {
    context_->set_path_name(id_, "");
    context_->events->OnPeerState(id_, PeerState::kRevoked, why_);
  }
  return true;
}

void UcxPeer::Abort() {
  Leave(absl::CancelledError("the transport is closing"));
  channel_->Close();
}

}  // namespace baton
