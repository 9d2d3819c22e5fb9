// SPDX-License-Identifier: Apache-2.0
// Workers in this process that speak worker.proto and replay canned tokens: output token i is (7 + i) % 26 for any
// prompt. No KV is handed over: the fake prefill worker tells the fake decode worker directly.
//
// Thread-safe. Calls that wait do so without a thread.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "baton/v1/worker.grpc.pb.h"
#include "common/grpc.h"
#include "common/ids.h"
#include "common/mutex.h"
#include "common/steady_time.h"
#include "text/assets/model_assets.h"

namespace baton::router {

inline TokenId CannedToken(uint32_t output_index) { return static_cast<TokenId>((7 + output_index) % 26); }

// A server stream that is written from anywhere and ends when told to.
template <typename Message>
class FakeStream : public grpc::ServerWriteReactor<Message> {
 public:
  explicit FakeStream(std::function<void()> on_done) : on_done_(std::move(on_done)) {}

  static std::shared_ptr<FakeStream> Make(std::function<void()> on_done = [] {}) {
    auto stream = std::make_shared<FakeStream>(std::move(on_done));
    stream->self_ = stream;
    return stream;
  }

  void Send(Message message) {
    {
      MutexLock lock(mutex_);
      queue_.push_back(std::move(message));
    }
    Pump();
  }
  void End(const grpc::Status& status = grpc::Status::OK) {
    {
      MutexLock lock(mutex_);
      if (!ending_) ending_ = status;
    }
    Pump();
  }

 private:
  void Pump() {
    std::optional<grpc::Status> end;
    {
      MutexLock lock(mutex_);
      if (busy_) return;
      if (!queue_.empty() && !cancelled_) {
        writing_ = std::move(queue_.front());
        queue_.erase(queue_.begin());
      } else if (ending_) {
        end = ending_;
      } else {
        return;
      }
      busy_ = true;
    }
    if (end) {
      this->Finish(*end);
    } else {
      this->StartWrite(&writing_);
    }
  }
  void OnWriteDone(bool /*ok*/) override {
    {
      MutexLock lock(mutex_);
      busy_ = false;
    }
    Pump();
  }
  void OnCancel() override {
    cancelled_ = true;
    End(grpc::Status::CANCELLED);
  }
  void OnDone() override {
    on_done_();
    self_ = nullptr;  // last: it may be the only reference
  }

  const std::function<void()> on_done_;
  std::shared_ptr<FakeStream> self_;
  std::atomic<bool> cancelled_ = false;
  Message writing_;
  Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Message> queue_ ABSL_GUARDED_BY(mutex_);
  std::optional<grpc::Status> ending_ ABSL_GUARDED_BY(mutex_);
};

using DecodeStream = FakeStream<v1::DecodeEvent>;
using PrefillStream = FakeStream<v1::PrefillEvent>;

// The attempts that decode workers have open, for prefill workers to hand over to.
class Handoffs {
 public:
  // Continues an attempt from output index `from`.
  using Continue = std::function<void(uint32_t from)>;

  void Add(const std::string& request_id, Continue on_handoff) {
    MutexLock lock(mutex_);
    open_[request_id] = std::move(on_handoff);
  }
  Continue Take(const std::string& request_id) {
    MutexLock lock(mutex_);
    auto node = open_.extract(request_id);
    return node.empty() ? nullptr : std::move(node.mapped());
  }

 private:
  Mutex mutex_;
  std::map<std::string, Continue> open_ ABSL_GUARDED_BY(mutex_);
};

struct FakeWorkerOptions {
  std::string id;
  v1::WorkerRole role = v1::WORKER_ROLE_BOTH;
  std::string listen = "127.0.0.1:0";
  AssetFiles assets;
  std::string announced_fingerprint;  // empty: the true one
};

class FakeWorker : public v1::WorkerControl::CallbackService,
                   public v1::PrefillWorker::CallbackService,
                   public v1::DecodeWorker::CallbackService {
 public:
  // The behaviour of an attempt of a client's request, instead of a complete answer. Probes get a complete answer.
  using DecodeScript = std::function<void(const v1::DecodeRequest&, std::shared_ptr<DecodeStream>)>;

  FakeWorker(FakeWorkerOptions options, Handoffs& handoffs) : options_(std::move(options)), handoffs_(handoffs) {
    GrpcServerOptions server;
    server.listen = options_.listen;
    absl::StatusOr<std::unique_ptr<GrpcServer>> started =
        GrpcServer::Start(server, {static_cast<v1::WorkerControl::CallbackService*>(this),
                                   static_cast<v1::PrefillWorker::CallbackService*>(this),
                                   static_cast<v1::DecodeWorker::CallbackService*>(this)});
    if (started.ok()) server_ = *std::move(started);
  }
  ~FakeWorker() override { server_->Shutdown(SteadyTime::Now()); }

  std::string address() const { return absl::StrCat("127.0.0.1:", server_->port()); }
  const std::string& id() const { return options_.id; }

  // From now on no status comes: the worker is silent, but its connection stands.
  void FallSilent() { silent_ = true; }
  void Speak() {
    silent_ = false;
    SendStatus();
  }
  void Heartbeat() { SendStatus(); }
  void SetLoad(v1::WorkerLoad load) {
    {
      MutexLock lock(mutex_);
      load_ = std::move(load);
    }
    SendStatus();
  }
  void SetDecodeScript(DecodeScript script) {
    MutexLock lock(mutex_);
    script_ = std::move(script);
  }
  // The answer to changes of the role. After OK the worker has its new role at once.
  void SetRoleAnswer(const grpc::Status& answer) {
    MutexLock lock(mutex_);
    role_answer_ = answer;
  }
  v1::WorkerRole role() const { return role_; }
  grpc::ServerUnaryReactor* ChangeRole(grpc::CallbackServerContext* context, const v1::ChangeRoleRequest* request,
                                       v1::ChangeRoleResponse*) override {
    grpc::Status answer;
    {
      MutexLock lock(mutex_);
      answer = role_answer_;
    }
    if (answer.ok()) {
      role_ = request->to();
      ++role_changes_;
      SendStatus();
    }
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(answer);
    return reactor;
  }
  int decode_calls() const { return decode_calls_; }
  int open_calls() const { return open_calls_; }

  static v1::DecodeEvent Tokens(uint32_t from, uint32_t to) {
    v1::DecodeEvent event;
    for (uint32_t i = from; i < to; ++i) {
      v1::TokenEvent& token = *event.mutable_tokens()->add_tokens();
      token.set_output_index(i);
      token.set_token_id(CannedToken(i));
    }
    return event;
  }
  static v1::DecodeEvent Finished() {
    v1::DecodeEvent event;
    event.mutable_finished()->set_reason(v1::FINISH_REASON_LENGTH);
    return event;
  }

 private:
  static bool IsProbe(const v1::AttemptHeader& header) { return header.is_probe(); }

  v1::WorkerStatus Status() {
    v1::WorkerStatus status;
    {
      MutexLock lock(mutex_);
      *status.mutable_load() = load_;
    }
    status.set_protocol(v1::WORKER_PROTOCOL_CURRENT);
    status.set_worker_id(options_.id);
    status.set_epoch(epoch_);
    status.set_role(role_);
    for (const auto role : {v1::WORKER_ROLE_PREFILL, v1::WORKER_ROLE_DECODE, v1::WORKER_ROLE_BOTH}) {
      status.mutable_role_facts()->add_possible(role);
    }
    status.mutable_role_facts()->set_changes(role_changes_);
    status.set_state(v1::WORKER_STATE_SERVING);
    status.mutable_model()->set_name("demo");
    status.mutable_model()->set_vocab_size(4096);
    status.mutable_model()->set_max_context_tokens(2048);
    status.mutable_model()->set_numerics_id("fake");
    status.mutable_model()->set_assets_fingerprint(
        options_.announced_fingerprint.empty() ? AssetsFingerprint(options_.assets) : options_.announced_fingerprint);
    status.mutable_capacity()->set_pages_total(1024);
    status.mutable_capacity()->set_page_tokens(16);
    status.mutable_capacity()->set_max_sequences(64);
    status.set_handoff_address("fake");
    return status;
  }

  void SendStatus() {
    std::shared_ptr<FakeStream<v1::WorkerStatus>> watch;
    {
      MutexLock lock(mutex_);
      watch = watch_;
    }
    if (watch != nullptr && !silent_) watch->Send(Status());
  }

  grpc::ServerWriteReactor<v1::WorkerStatus>* WatchStatus(grpc::CallbackServerContext*,
                                                          const v1::WatchStatusRequest*) override {
    auto stream = FakeStream<v1::WorkerStatus>::Make();
    {
      MutexLock lock(mutex_);
      watch_ = stream;
    }
    SendStatus();
    return stream.get();
  }

  grpc::ServerWriteReactor<v1::ModelAssetPiece>* GetModelAssets(grpc::CallbackServerContext*,
                                                                const v1::GetModelAssetsRequest*) override {
    auto stream = FakeStream<v1::ModelAssetPiece>::Make();
    for (const auto& [name, content] : options_.assets) {
      for (size_t at = 0; at < content.size(); at += 1 << 16) {
        v1::ModelAssetPiece piece;
        piece.set_name(name);
        piece.set_data(content.substr(at, 1 << 16));
        stream->Send(std::move(piece));
      }
    }
    stream->End();
    return stream.get();
  }

  grpc::ServerWriteReactor<v1::DecodeEvent>* Decode(grpc::CallbackServerContext*,
                                                    const v1::DecodeRequest* request) override {
    ++open_calls_;
    auto stream = DecodeStream::Make([this] { --open_calls_; });
    v1::DecodeEvent accepted;
    accepted.mutable_accepted();
    stream->Send(accepted);
    if (!IsProbe(request->header())) ++decode_calls_;
    if (request->prefill_locally()) {
      Answer(*request, stream, static_cast<uint32_t>(request->header().prior_output_token_ids_size()));
    } else {
      handoffs_.Add(request->header().request_id(),
                    [this, request = *request, weak = std::weak_ptr(stream)](uint32_t from) {
                      if (const auto open = weak.lock()) Answer(request, open, from);
                    });
    }
    return stream.get();
  }

  grpc::ServerWriteReactor<v1::PrefillEvent>* Prefill(grpc::CallbackServerContext*,
                                                      const v1::PrefillRequest* request) override {
    ++open_calls_;
    auto stream = PrefillStream::Make([this] { --open_calls_; });
    const auto first = static_cast<uint32_t>(request->header().prior_output_token_ids_size());
    v1::PrefillEvent token;
    token.mutable_first_token()->set_output_index(first);
    token.mutable_first_token()->set_token_id(CannedToken(first));
    stream->Send(token);
    const Handoffs::Continue hand_over = handoffs_.Take(request->header().request_id());
    v1::PrefillEvent end;
    if (first + 1 == request->header().sampling().max_tokens()) {
      end.mutable_finished()->set_reason(v1::FINISH_REASON_LENGTH);
    } else if (hand_over == nullptr) {
      end.mutable_failed()->set_cause(v1::CAUSE_PEER_LOST);
    } else {
      end.mutable_handed_over()->set_kv_bytes(4096);
      hand_over(first + 1);
    }
    stream->Send(end);
    stream->End();
    return stream.get();
  }

  void Answer(const v1::DecodeRequest& request, const std::shared_ptr<DecodeStream>& stream, uint32_t from) {
    v1::DecodeEvent started;
    started.mutable_started();
    stream->Send(started);
    DecodeScript script;
    {
      MutexLock lock(mutex_);
      if (!IsProbe(request.header())) script = script_;
    }
    if (script) return script(request, stream);
    stream->Send(Tokens(from, request.header().sampling().max_tokens()));
    stream->Send(Finished());
    stream->End();
  }

  const FakeWorkerOptions options_;
  const uint64_t epoch_ = RandomEpoch();
  Handoffs& handoffs_;
  std::atomic<v1::WorkerRole> role_{options_.role};
  std::atomic<uint32_t> role_changes_{0};
  std::atomic<bool> silent_ = false;
  std::atomic<int> decode_calls_ = 0;
  std::atomic<int> open_calls_ = 0;
  Mutex mutex_;
  grpc::Status role_answer_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<FakeStream<v1::WorkerStatus>> watch_ ABSL_GUARDED_BY(mutex_);
  DecodeScript script_ ABSL_GUARDED_BY(mutex_);
  v1::WorkerLoad load_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<GrpcServer> server_;
};

}  // namespace baton::router
