// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/ucx/ucx_node.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {
namespace {

constexpr int kMaxUnauthenticated = 64;  // accepted connections at a time
constexpr size_t kMaxLookups = 16;       // concurrent name lookups
constexpr size_t kMaxUnmapped = 1024;
constexpr int kProgressBatch = 64;
constexpr int kBusyRounds = 16;  // rounds of work between two checks of the descriptors
constexpr absl::Duration kCloseTimeout = absl::Seconds(1);
constexpr absl::Duration kCloseStep = absl::Milliseconds(20);

absl::Status CheckOptions(const TransportOptions& options) {
  BATON_RETURN_IF_ERROR(CheckSecret(options.secret));
  if (options.path != "auto" && options.path != "tcp" && options.path != "shm") {
    return absl::InvalidArgumentError(
        absl::StrCat("transport path: \"", options.path, "\", expected auto, tcp or shm"));
  }
  if (options.heartbeat_interval < absl::Milliseconds(1)) {
    return absl::InvalidArgumentError("transport heartbeat_interval: must be at least 1 ms");
  }
  if (options.silent_after <= options.heartbeat_interval || options.peer_timeout <= options.silent_after) {
    return absl::InvalidArgumentError(
        absl::StrCat("transport times: expected heartbeat_interval < silent_after < peer_timeout, got ",
                     absl::FormatDuration(options.heartbeat_interval), ", ", absl::FormatDuration(options.silent_after),
                     ", ", absl::FormatDuration(options.peer_timeout)));
  }
  if (options.connect_timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("transport connect_timeout: must be positive");
  }
  if (options.max_message_bytes == 0 || options.max_message_bytes > (size_t{1} << 30)) {
    return absl::InvalidArgumentError("transport max_message_bytes: expected 1 byte to 1 GiB");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> AdvertisedAddress(const TransportOptions& options, const SocketAddress& bound) {
  if (options.advertise_address.empty()) {
    if (!bound.IsAnyHost()) return bound.ToString();
    return absl::InvalidArgumentError(
        absl::StrCat("listen_address ", options.listen_address,
                     " binds every address: expected an advertise_address that peers can connect to"));
  }
  BATON_ASSIGN_OR_RETURN(const HostPort advertised, ParseHostPort(options.advertise_address));
  if (advertised.port != 0) return options.advertise_address;
  const std::string host = options.advertise_address.substr(0, options.advertise_address.rfind(':'));
  return absl::StrCat(host, ":", bound.port());
}

// Returns the network interface of local_host, else of the listener; empty for all interfaces.
absl::StatusOr<std::string> NetworkInterface(const TransportOptions& options, const IntroductionListener* listener) {
  if (!options.local_host.empty()) {
    const bool v6 = options.local_host.find(':') != std::string::npos;
    const std::string with_port = v6 ? absl::StrCat("[", options.local_host, "]:0") : options.local_host + ":0";
    BATON_ASSIGN_OR_RETURN(const SocketAddress address, ResolveAddress(with_port, /*numeric_only=*/false));
    return DeviceOf(address);
  }
  return listener != nullptr ? DeviceOf(listener->bound()) : "";
}

absl::StatusOr<NetworkChoice> FindNetwork(const TransportOptions& options, const IntroductionListener* listener) {
  ConfigureUcxLibrary();
  NetworkWish wish{.tcp_only = options.path != "auto",
                   .user_transports = UcxUserSetting("UCX_TLS"),
                   .user_devices = UcxUserSetting("UCX_NET_DEVICES")};
  BATON_ASSIGN_OR_RETURN(wish.interface, NetworkInterface(options, listener));
  if (!wish.interface.empty()) wish.rdma_devices = RdmaDevicesOf(wish.interface);
  BATON_ASSIGN_OR_RETURN(const std::vector<NetworkResource> found, FindNetworkResources());
  BATON_ASSIGN_OR_RETURN(NetworkChoice network, ChooseNetwork(found, wish));
  Log(LogLevel::kInfo, "handoff.network",
      {{"transports", network.ToString()}, {"frame_bytes", network.max_payload_bytes}});
  return network;
}

}  // namespace

// ------------------------------------------------------------------------------------------------ start and end

absl::StatusOr<std::unique_ptr<UcxNode>> UcxNode::Create(const TransportOptions& options) {
  BATON_RETURN_IF_ERROR(CheckOptions(options));
  std::unique_ptr<UcxNode> node(new UcxNode(options));
  if (!options.listen_address.empty()) {
    BATON_ASSIGN_OR_RETURN(node->listener_, IntroductionListener::Listen(options.listen_address));
    BATON_ASSIGN_OR_RETURN(node->address_, AdvertisedAddress(options, node->listener_->bound()));
    BATON_RETURN_IF_ERROR(node->poller_.Add(node->listener_->fd(), Poller::Trigger::kEdge));
  }
  BATON_ASSIGN_OR_RETURN(node->network_, FindNetwork(options, node->listener_.get()));
  BATON_ASSIGN_OR_RETURN(node->outgoing_, UcxWorker::Create(node->network_));
  BATON_ASSIGN_OR_RETURN(node->incoming_, UcxWorker::Create(node->network_));
  BATON_ASSIGN_OR_RETURN(node->worker_address_, node->incoming_->Address());
  BATON_RETURN_IF_ERROR(node->poller_.Add(node->wake_->fd(), Poller::Trigger::kLevel));
  BATON_RETURN_IF_ERROR(node->poller_.Add(node->outgoing_->event_fd(), Poller::Trigger::kLevel));
  BATON_RETURN_IF_ERROR(node->poller_.Add(node->incoming_->event_fd(), Poller::Trigger::kLevel));
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kFrameHandlerId;
  handler.cb = &UcxNode::OnFrame;
  handler.arg = node.get();
  BATON_RETURN_IF_ERROR(FromUcx(ucp_worker_set_am_recv_handler(node->incoming_->handle(), &handler),
                                "cannot set the UCX message handler"));
  return node;
}

UcxNode::UcxNode(const TransportOptions& options)
    : options_(options),
      wake_(std::make_shared<EventFd>()),
      tasks_(std::make_shared<TaskQueue>([wake = wake_] { wake->Signal(); })) {}

UcxNode::~UcxNode() {
  if (thread_.joinable()) {
    Post(absl::ZeroDuration(), [this] { stop_ = true; });
    thread_.join();
  }
  tasks_->Close();
}

absl::StatusOr<TransportMemory> UcxNode::AllocateRegion(size_t bytes) {
  if (thread_.joinable())
    return absl::FailedPreconditionError("cannot allocate a region after Start: expected the call before");
  BATON_ASSIGN_OR_RETURN(SharedRegion region, SharedRegion::Allocate(bytes));
  regions_.push_back(std::move(region));
  return regions_.back().memory();
}

absl::Status UcxNode::Start(TransportEvents* events) {
  if (thread_.joinable()) return absl::FailedPreconditionError("cannot start the transport twice");
  Identity identity = LocalIdentity();
  const SharedRegion* const region = regions_.empty() ? nullptr : regions_.data();
  identity.region_bytes = region == nullptr ? 0 : region->memory().bytes;
  identity.shares_memory = options_.path == "shm" || (options_.path == "auto" && UcxMayShareMemory()) ? 1 : 0;
  context_.emplace(UcxPeerContext{
      .options = options_,
      .region = region,
      .events = events,
      .identity = identity,
      .network_path = "ucx:" + network_.transports,
      .watch = [this](int fd) { static_cast<void>(poller_.Add(fd, Poller::Trigger::kEdge).ok()); },
      .advance_after = [this](absl::Duration delay) { Post(delay, [] {}); },
      .set_path_name =
          [this](PeerId peer, std::string name) {
            MutexLock lock(path_names_mutex_);
            if (name.empty()) {
              path_names_.erase(peer);
            } else {
              path_names_[peer] = std::move(name);
            }
          },
      .unmapped =
          [this](const Identity& process, uint64_t session) {
            if (unmapped_.size() == kMaxUnmapped) unmapped_.erase(unmapped_.begin());
            unmapped_.push_back({process, session});
          },
      .unmapped_is_known =
          [this](uint64_t session) {
            std::erase_if(unmapped_, [&](const Unmapped& notice) { return notice.session == session; });
          },
      .peer_unmapped =
          [this](const Identity& process, uint64_t session) {
            const auto it = by_session_.find(session);
            if (it != by_session_.end() && it->second->IsOf(process)) it->second->OnUnmapped();
          },
  });
  stalls_.emplace(options_.heartbeat_interval, SteadyTime::Now());
  Post(options_.heartbeat_interval, [this] { Tick(); });
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void UcxNode::Run() {
  for (int round = 0; !stop_; ++round) {
    if (!RunOnce()) {
      SleepUntil(tasks_->NextDue());
    } else if (round % kBusyRounds == 0) {
      check_descriptors_ = true;
    }
  }
  CloseAll();
}

// Says goodbye to all peers and waits up to kCloseTimeout until UCX has released everything.
void UcxNode::CloseAll() {
  context_->events = nullptr;
  tasks_->Close();
  listener_.reset();
  pending_.clear();
  for (const auto& [id, peer] : peers_) peer->Leave(absl::CancelledError("the transport is closing"));
  const auto advance_until = [this](SteadyTime deadline, const auto& done) {
    while (!done() && SteadyTime::Now() < deadline) {
      if (!RunOnce()) SleepUntil(SteadyTime::Now() + kCloseStep);
    }
  };
  const auto drained = [](const auto& entry) { return entry.second->drained(); };
  advance_until(SteadyTime::Now() + kCloseTimeout / 4, [this] { return peers_.empty(); });
  for (const auto& [id, peer] : peers_) peer->Abort();
  advance_until(SteadyTime::Now() + kCloseTimeout, [&] { return std::all_of(peers_.begin(), peers_.end(), drained); });
  if (!std::all_of(peers_.begin(), peers_.end(), drained)) outgoing_->Abandon();
  peers_.clear();
  by_session_.clear();
  lookups_.clear();
}

bool UcxNode::RunOnce() {
  bool worked = false;
  for (int i = 0; i < kProgressBatch && incoming_->Progress(); ++i) worked = true;
  worked |= outgoing_->Progress();
  wake_->Drain();
  worked |= tasks_->RunDue();
  if (std::exchange(check_descriptors_, false)) CheckDescriptors();
  worked |= AdvancePeers();
  return worked;
}

void UcxNode::SleepUntil(SteadyTime deadline) {
  if (!incoming_->Arm() || !outgoing_->Arm()) return;
  poller_.WaitUntil(deadline);
  check_descriptors_ = true;
}

void UcxNode::Tick() {
  const SteadyTime now = SteadyTime::Now();
  const absl::Duration stall = stalls_->Tick(now);
  for (const auto& [id, peer] : peers_) peer->Tick(now, stall);
  SendUnmapped();
  check_descriptors_ = true;
  Post(options_.heartbeat_interval, [this] { Tick(); });
}

void UcxNode::CheckDescriptors() {
  AcceptConnections();
  AdvancePending();
  for (const auto& [id, peer] : peers_) peer->CheckProcess();
}

bool UcxNode::AdvancePeers() {
  bool worked = false;
  for (auto it = peers_.begin(); it != peers_.end();) {
    UcxPeer& peer = *it->second;
    worked |= peer.Advance();
    if (peer.gone()) {
      by_session_.erase(peer.session());
      it = peers_.erase(it);
    } else {
      ++it;
    }
  }
  return worked;
}

void UcxNode::SendUnmapped() {
  std::erase_if(unmapped_, [this](const Unmapped& notice) {
    const auto it = std::find_if(peers_.begin(), peers_.end(), [&](const auto& entry) {
      return entry.second->open() && entry.second->IsOf(notice.process);
    });
    if (it == peers_.end()) return false;
    it->second->SendUnmapped(notice.session);
    return true;
  });
}

std::string UcxNode::PathName(PeerId peer) const {
  MutexLock lock(path_names_mutex_);
  const auto it = path_names_.find(peer);
  return it == path_names_.end() ? "" : it->second;
}

// ------------------------------------------------------------------------------------------------ new connections

void UcxNode::AcceptConnections() {
  if (listener_ == nullptr) return;
  while (std::optional<FileDescriptor> socket = listener_->Accept()) {
    const auto accepted = std::count_if(pending_.begin(), pending_.end(),
                                        [](const Pending& pending) { return pending.connected == nullptr; });
    if (accepted >= kMaxUnauthenticated) continue;  // closes the socket
    AddPending({.introduction = Introduction::Accept(*std::move(socket), options_.secret, worker_address_),
                .deadline = {},
                .address = "",
                .connected = nullptr});
  }
}

void UcxNode::AddPending(Pending pending) {
  pending.deadline = SteadyTime::Now() + options_.connect_timeout;
  static_cast<void>(poller_.Add(pending.introduction->fd(), Poller::Trigger::kEdge).ok());
  pending_.push_back(std::move(pending));
}

void UcxNode::AdvancePending() {
  const SteadyTime now = SteadyTime::Now();
  for (size_t i = 0; i < pending_.size();) {
    std::optional<absl::StatusOr<Introduced>> result = pending_[i].introduction->Advance();
    if (!result.has_value() && now >= pending_[i].deadline) {
      result = absl::DeadlineExceededError(
          absl::StrCat("no answer within ", absl::FormatDuration(options_.connect_timeout)));
    }
    if (!result.has_value()) {
      ++i;
      continue;
    }
    Pending pending = std::move(pending_[i]);
    pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(i));
    if (result->ok()) {
      OnIntroduced(std::move(pending), **result);
    } else if (pending.connected == nullptr) {
      LogRefused(pending, result->status());
    } else {
      const absl::Status& why = result->status();
      pending.connected(
          absl::Status(why.code(), Concat("cannot connect to ", pending.address, ": ", FromAbsl(why.message()))));
    }
  }
}

// Logs at most once a second, so that refused connections cannot flood the log.
void UcxNode::LogRefused(const Pending& pending, const absl::Status& why) {
  const SteadyTime now = SteadyTime::Now();
  if (now < next_refused_log_) return;
  next_refused_log_ = now + absl::Seconds(1);
  Log(LogLevel::kWarning, "transport.refused", {{"from", PeerName(pending.introduction->fd())}, {"status", why}});
}

void UcxNode::OnIntroduced(Pending pending, const Introduced& introduced) {
  absl::StatusOr<std::unique_ptr<UcxChannel>> channel =
      introduced.worker_address == worker_address_ ? absl::InvalidArgumentError("a transport cannot connect to itself")
                                                   : UcxChannel::Create(outgoing_->handle(), introduced.worker_address,
                                                                        introduced.session, network_.max_payload_bytes);
  if (!channel.ok()) {
    if (pending.connected != nullptr) {
      pending.connected(channel.status());
    } else {
      LogRefused(pending, channel.status());
    }
    return;
  }
  const bool is_server = pending.connected == nullptr;
  const PeerId id = NextPeerId();
  auto peer = std::make_unique<UcxPeer>(&*context_, id, *std::move(channel), std::move(pending.connected));
  by_session_[introduced.session] = peer.get();
  peers_.emplace(id, std::move(peer));
  if (is_server) pending.introduction->Confirm();
}

ucs_status_t UcxNode::OnFrame(void* node, const void* header, size_t header_bytes, void* data, size_t bytes,
                              const ucp_am_recv_param_t* params) {
  auto* const self = static_cast<UcxNode*>(node);
  const std::optional<FrameHeader> parsed = ParseHeader({static_cast<const char*>(header), header_bytes});
  if (!parsed.has_value()) return UCS_OK;  // not a frame of ours
  const auto it = self->by_session_.find(parsed->session);
  if (it == self->by_session_.end()) return UCS_OK;
  if ((params->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 || bytes > kMaxPayloadBytes) {
    it->second->OnUnexpected("something that is not a frame");
  } else {
    it->second->OnFrame(*parsed, {static_cast<const char*>(data), bytes});
  }
  return UCS_OK;
}

// ------------------------------------------------------------------------------------------------ from the user

void UcxNode::Connect(const std::string& address, ConnectDone done) {
  const absl::StatusOr<SocketAddress> numeric = ResolveAddress(address, /*numeric_only=*/true);
  if (numeric.ok()) return ConnectTo(address, *numeric, std::move(done));
  if (absl::IsInvalidArgument(numeric.status())) return done(numeric.status());
  LookUp(address, std::move(done));
}

// Resolves the name in a thread of its own, because a name server may be slow. A late answer is dropped.
void UcxNode::LookUp(const std::string& address, ConnectDone done) {
  if (lookups_.size() >= kMaxLookups) {
    return done(absl::ResourceExhaustedError(
        absl::StrCat("cannot look up ", address, ": ", kMaxLookups, " lookups are running already")));
  }
  const uint64_t lookup = next_lookup_++;
  lookups_.emplace(lookup, std::move(done));
  Post(options_.connect_timeout, [this, lookup, address] {
    OnLookedUp(lookup, address,
               absl::DeadlineExceededError(absl::StrCat("cannot look up ", address, ": no answer within ",
                                                        absl::FormatDuration(options_.connect_timeout))));
  });
  std::thread([this, tasks = tasks_, lookup, address] {
    tasks->Post(absl::ZeroDuration(), [this, lookup, address, result = ResolveAddress(address, false)] {
      OnLookedUp(lookup, address, result);
    });
  }).detach();
}

void UcxNode::OnLookedUp(uint64_t lookup, const std::string& address, const absl::StatusOr<SocketAddress>& result) {
  const auto it = lookups_.find(lookup);
  if (it == lookups_.end()) return;
  ConnectDone done = std::move(it->second);
  lookups_.erase(it);
  if (!result.ok()) return done(result.status());
  ConnectTo(address, *result, std::move(done));
}

void UcxNode::ConnectTo(const std::string& address, const SocketAddress& socket_address, ConnectDone done) {
  absl::StatusOr<std::unique_ptr<Introduction>> introduction =
      Introduction::Connect(socket_address, options_.secret, worker_address_);
  if (!introduction.ok()) {
    const absl::Status& why = introduction.status();
    return done(absl::Status(why.code(), Concat("cannot connect to ", address, ": ", FromAbsl(why.message()))));
  }
  AddPending(
      {.introduction = *std::move(introduction), .deadline = {}, .address = address, .connected = std::move(done)});
}

UcxPeer* UcxNode::FindOpen(PeerId id) {
  const auto it = peers_.find(id);
  return it == peers_.end() || !it->second->open() ? nullptr : it->second.get();
}

void UcxNode::Send(PeerId id, std::string message) {
  if (UcxPeer* peer = FindOpen(id); peer != nullptr) peer->Send(std::move(message));
}

void UcxNode::Put(PeerId id, StreamId stream, std::span<const PutPiece> pieces) {
  if (UcxPeer* peer = FindOpen(id); peer != nullptr) peer->Put(stream, pieces);
}

void UcxNode::Flush(PeerId id, StreamId stream, std::function<void(absl::Status)> done) {
  if (const auto it = peers_.find(id); it != peers_.end()) return it->second->Flush(stream, std::move(done));
  done(absl::UnavailableError(absl::StrCat("peer ", static_cast<uint64_t>(id), " is not connected")));
}

void UcxNode::Disconnect(PeerId id) {
  if (UcxPeer* peer = FindOpen(id); peer != nullptr) peer->Leave(absl::CancelledError("disconnected by this side"));
}

}  // namespace baton
