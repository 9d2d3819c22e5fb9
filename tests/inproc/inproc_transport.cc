// SPDX-License-Identifier: Apache-2.0
#include "tests/inproc/inproc_transport.h"

#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "tests/inproc/inproc_node.h"

namespace baton {

absl::StatusOr<std::unique_ptr<InprocTransport>> InprocTransport::Create(const TransportOptions& options) {
  BATON_ASSIGN_OR_RETURN(std::shared_ptr<InprocNode> node, InprocNode::Create(options));
  return std::unique_ptr<InprocTransport>(new InprocTransport(std::move(node)));
}

InprocTransport::InprocTransport(std::shared_ptr<InprocNode> node) : node_(std::move(node)) {}
InprocTransport::~InprocTransport() { node_->Stop(); }

absl::StatusOr<TransportMemory> InprocTransport::AllocateRegion(size_t bytes) { return node_->AllocateRegion(bytes); }
absl::Status InprocTransport::Start(TransportEvents* events) { return node_->Start(events); }
std::string InprocTransport::address() const { return node_->address(); }
size_t InprocTransport::max_message_bytes() const { return node_->max_message_bytes(); }
std::string InprocTransport::PathName(PeerId peer) const { return node_->PathName(peer); }

void InprocTransport::Post(absl::Duration delay, std::function<void()> task) { node_->Post(delay, std::move(task)); }

// The node outlives its task queue, so that tasks may hold a plain pointer to the node.
void InprocTransport::Connect(const std::string& address, std::function<void(absl::StatusOr<PeerId>)> done) {
  Post(absl::ZeroDuration(), [node = node_.get(), address, done = std::move(done)] { node->Connect(address, done); });
}

void InprocTransport::Send(PeerId peer, std::string message) {
  Post(absl::ZeroDuration(),
       [node = node_.get(), peer, message = std::move(message)]() mutable { node->Send(peer, std::move(message)); });
}

void InprocTransport::Put(PeerId peer, StreamId stream, std::span<const PutPiece> pieces) {
  Post(absl::ZeroDuration(),
       [node = node_.get(), peer, stream, pieces = std::vector<PutPiece>(pieces.begin(), pieces.end())]() mutable {
         node->Put(peer, stream, std::move(pieces));
       });
}

void InprocTransport::Flush(PeerId peer, StreamId stream, std::function<void(absl::Status)> done) {
  Post(absl::ZeroDuration(),
       [node = node_.get(), peer, stream, done = std::move(done)] { node->Flush(peer, stream, done); });
}

void InprocTransport::Disconnect(PeerId peer) {
  Post(absl::ZeroDuration(), [node = node_.get(), peer] { node->Disconnect(peer); });
}

void InprocTransport::Pause() { node_->SetRunState(InprocNode::RunState::kPaused); }
void InprocTransport::Resume() { node_->SetRunState(InprocNode::RunState::kRunning); }
void InprocTransport::Kill() { node_->SetRunState(InprocNode::RunState::kKilled); }
void InprocTransport::CutNetwork() { node_->set_network_cut(true); }
void InprocTransport::ReconnectNetwork() { node_->set_network_cut(false); }
void InprocTransport::HoldPuts() {
  Post(absl::ZeroDuration(), [node = node_.get()] { node->SetHoldPuts(true); });
}
void InprocTransport::ReleasePuts() {
  Post(absl::ZeroDuration(), [node = node_.get()] { node->SetHoldPuts(false); });
}

}  // namespace baton
