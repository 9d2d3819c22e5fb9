// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/ucx/ucx_transport.h"

#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "kvtransfer/ucx/ucx_node.h"

namespace baton {
namespace {

// Posts every call to the node's I/O thread. Tasks hold a plain pointer: the node closes its queue before it is
// destroyed.
class UcxTransport final : public Transport {
 public:
  explicit UcxTransport(std::unique_ptr<UcxNode> node) : node_(std::move(node)) {}

  absl::StatusOr<TransportMemory> AllocateRegion(size_t bytes) override { return node_->AllocateRegion(bytes); }
  absl::Status Start(TransportEvents* events) override { return node_->Start(events); }
  std::string address() const override { return node_->address(); }
  size_t max_message_bytes() const override { return node_->max_message_bytes(); }
  std::string PathName(PeerId peer) const override { return node_->PathName(peer); }
  void Post(absl::Duration delay, std::function<void()> task) override { node_->Post(delay, std::move(task)); }

  void Connect(const std::string& address, std::function<void(absl::StatusOr<PeerId>)> done) override {
    Call([address, done = std::move(done)](UcxNode& node) { node.Connect(address, done); });
  }
  void Send(PeerId peer, std::string message) override {
    Call([peer, message = std::move(message)](UcxNode& node) mutable { node.Send(peer, std::move(message)); });
  }
  void Put(PeerId peer, StreamId stream, std::span<const PutPiece> pieces) override {
    Call([peer, stream, pieces = std::vector<PutPiece>(pieces.begin(), pieces.end())](UcxNode& node) {
      node.Put(peer, stream, pieces);
    });
  }
  void Flush(PeerId peer, StreamId stream, std::function<void(absl::Status)> done) override {
    Call([peer, stream, done = std::move(done)](UcxNode& node) { node.Flush(peer, stream, done); });
  }
  void Disconnect(PeerId peer) override {
    Call([peer](UcxNode& node) { node.Disconnect(peer); });
  }

 private:
  template <typename F>
  void Call(F call) {
    Post(absl::ZeroDuration(), [node = node_.get(), call = std::move(call)]() mutable { call(*node); });
  }

  const std::unique_ptr<UcxNode> node_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> CreateUcxTransport(const TransportOptions& options) {
  BATON_ASSIGN_OR_RETURN(std::unique_ptr<UcxNode> node, UcxNode::Create(options));
  return std::make_unique<UcxTransport>(std::move(node));
}

}  // namespace baton
