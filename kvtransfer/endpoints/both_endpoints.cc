// SPDX-License-Identifier: Apache-2.0
// Joins both endpoints on one transport. A connection serves one direction: the receiver uses accepted connections, the
// sender uses outgoing connections.
#include <memory>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "common/status_macros.h"
#include "kvtransfer/endpoints/endpoints.h"
#include "kvtransfer/endpoints/make_endpoint.h"

namespace baton {
namespace {

class BothEndpoints final : public HandoffEndpoints, public TransportEvents {
 public:
  BothEndpoints(std::unique_ptr<TransportReceiver> receiver, std::unique_ptr<TransportSender> sender)
      : receiver_(std::move(receiver)), sender_(std::move(sender)) {}

  HandoffReceiver& receiver() override { return *receiver_; }
  HandoffSender& sender() override { return *sender_; }

  void OnPeerAccepted(PeerId peer) override {
    accepted_.insert(peer);
    receiver_->OnPeerAccepted(peer);
  }
  void OnMessage(PeerId peer, std::string_view message) override { Of(peer).OnMessage(peer, message); }
  void OnPeerState(PeerId peer, PeerState state, const absl::Status& why) override {
    Of(peer).OnPeerState(peer, state, why);
    if (state == PeerState::kRevoked) accepted_.erase(peer);
  }
  bool AllowWrite(PeerId peer, StreamId stream, uint64_t offset, uint64_t bytes) override {
    return Of(peer).AllowWrite(peer, stream, offset, bytes);
  }

 private:
  TransportEvents& Of(PeerId peer) {
    return accepted_.contains(peer) ? static_cast<TransportEvents&>(*receiver_) : *sender_;
  }

  const std::unique_ptr<TransportReceiver> receiver_;
  const std::unique_ptr<TransportSender> sender_;
  absl::flat_hash_set<PeerId> accepted_;  // on the I/O thread only
};

}  // namespace

absl::StatusOr<std::unique_ptr<HandoffEndpoints>> HandoffEndpoints::Create(const HandoffIdentity& identity,
                                                                           const ReceiverOptions& options,
                                                                           Transport* transport, PagePool* pool,
                                                                           HandoffCapacity* capacity,
                                                                           HandoffReceiver::Events events) {
  BATON_ASSIGN_OR_RETURN(std::unique_ptr<TransportReceiver> receiver,
                         MakeReceiver(identity, options, transport, pool, capacity, std::move(events)));
  BATON_ASSIGN_OR_RETURN(std::unique_ptr<TransportSender> sender,
                         MakeSender(identity, SenderOptions{}, transport, pool));
  auto both = std::make_unique<BothEndpoints>(std::move(receiver), std::move(sender));
  BATON_RETURN_IF_ERROR(transport->Start(both.get()));
  return both;
}

}  // namespace baton
