// SPDX-License-Identifier: Apache-2.0
#include "common/grpc.h"

#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/health_check_service_interface.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "common/address.h"
#include "common/grpc_message.h"
#include "common/grpc_reflection.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {
namespace {

constexpr size_t kMaxStatusMessageBytes = 2048;
constexpr absl::Duration kMinPeerTimeout = absl::Seconds(3);
// Servers accept pings this close together. The shortest keepalive below is twenty times longer.
constexpr int kMinPingIntervalMs = 100;
constexpr absl::Duration kCancelInterval = absl::Milliseconds(50);

// gRPC tells us what went wrong by status; its own log is for debugging.
void ForwardGrpcLog(gpr_log_func_args* args) {
  Log(LogLevel::kDebug, "grpc.library", {{"message", args->message}, {"file", args->file}, {"line", args->line}});
}

// All channels and servers share the threads that run callbacks. The last owner joins these threads. If the last owner
// is one of these threads itself, in a call's last reaction, the process aborts. So one channel, used once,
// is kept for good.
void KeepCallbackThreads() {
  struct Call {
    grpc::ClientContext context;
    grpc::Slice empty;
    grpc::ByteBuffer request{&empty, 1};
    grpc::ByteBuffer response;
  };
  static auto* const channel =
      new std::shared_ptr<grpc::Channel>(grpc::CreateChannel("ipv4:127.0.0.1:1", grpc::InsecureChannelCredentials()));
  auto call = std::make_shared<Call>();
  call->context.set_deadline(GrpcDeadline(absl::ZeroDuration()));  // over before it begins: nothing is connected
  grpc::GenericStub(*channel).UnaryCall(&call->context, "/", {}, &call->request, &call->response,
                                        [call](const grpc::Status&) {});
}

// Process-wide settings of the library.
void InitGrpcOnce() {
  [[maybe_unused]] static const bool done = [] {
    gpr_set_log_function(ForwardGrpcLog);
    // Debian's Abseil looks for cycles in the order of gRPC's locks, at every one of them.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    RouteProtobufLog();
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    KeepCallbackThreads();
    return true;
  }();
}

// The arguments of channels and servers by which both notice a silent peer.
std::vector<std::pair<const char*, int>> KeepaliveArguments(absl::Duration peer_timeout) {
  const int64_t total_ms = absl::ToInt64Milliseconds(std::clamp(peer_timeout, kMinPeerTimeout, absl::Hours(1)));
  return {{GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(total_ms * 2 / 3)},  // silence before a ping
          {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(total_ms / 3)},   // wait for its answer
          // A blocking client answers no pings between its calls: nobody there reads the connection. A server answers
          // pings of a connection without calls with GOAWAY.
          {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0},
          {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0}};
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.code()),
          std::string(status.message().substr(0, kMaxStatusMessageBytes))};
}

gpr_timespec GrpcDeadline(absl::Duration timeout) {
  const absl::Duration bounded = std::clamp(timeout, absl::ZeroDuration(), absl::Hours(24 * 365));
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(absl::ToInt64Nanoseconds(bounded), GPR_TIMESPAN));
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const int code = status.error_code();
  const bool known = code > 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return {known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown, status.error_message()};
}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const GrpcServerOptions& options,
                                                              const std::vector<grpc::Service*>& services) {
  InitGrpcOnce();
  // gRPC is content with one of several addresses of a name, and does not say why it has none.
  BATON_RETURN_IF_ERROR(CheckCanListen(options.listen));

  std::unique_ptr<GrpcServer> server(new GrpcServer);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &server->port_);
  // Else two processes share a port, and half of the calls go to the wrong one.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(options.max_message_bytes);
  builder.SetMaxSendMessageSize(options.max_message_bytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_concurrent_streams);
  for (const auto& [name, value] : KeepaliveArguments(options.peer_timeout)) builder.AddChannelArgument(name, value);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingIntervalMs);
  for (grpc::Service* service : services) builder.RegisterService(service);
  server->reflection_->Install(builder);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || server->port_ == 0) {
    return absl::UnavailableError(Concat("cannot listen on ", options.listen));
  }
  server->health_names_ = options.health_names;
  server->health_names_.emplace_back();
  server->SetServing(true);
  return server;
}

GrpcServer::GrpcServer() : reflection_(std::make_unique<ReflectionService>()) {}
GrpcServer::~GrpcServer() { Shutdown(SteadyTime::Now() + absl::Seconds(1)); }

// gRPC's health service sends every status that it is told, also one that it was told before.
void GrpcServer::SetServing(bool serving) {
  MutexLock lock(health_mutex_);
  if (serving_ == serving) return;
  serving_ = serving;
  for (const std::string& name : health_names_) server_->GetHealthCheckService()->SetServingStatus(name, serving);
}

void GrpcServer::StopListening() {
  if (shut_down_ || stopping_.joinable()) return;
  SetServing(false);
  stopping_ = std::thread([this] {
    server_->Shutdown(GrpcDeadline(absl::InfiniteDuration()));
    calls_ended_.Notify();
  });
}

void GrpcServer::Shutdown(SteadyTime deadline) {
  if (server_ == nullptr || shut_down_) return;
  StopListening();
  shut_down_ = true;
  absl::Duration patience = deadline - SteadyTime::Now();
  while (!calls_ended_.WaitForNotificationWithTimeout(patience)) {
    // More than once: a call may come before gRPC's shutdown has begun.
    grpc_server_cancel_all_calls(server_->c_server());
    patience = kCancelInterval;
  }
  stopping_.join();
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& target, const ChannelOptions& options) {
  InitGrpcOnce();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(options.max_message_bytes);
  arguments.SetMaxSendMessageSize(options.max_message_bytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);  // also the least time for a connection attempt
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000);  // the default of 30 s keeps dead addresses
  for (const auto& [name, value] : KeepaliveArguments(options.peer_timeout)) arguments.SetInt(name, value);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (options.service_config != nullptr) arguments.SetServiceConfigJSON(options.service_config);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace baton
