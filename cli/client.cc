// SPDX-License-Identifier: Apache-2.0
#include "cli/client.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/console/interrupt.h"
#include "common/grpc.h"
#include "common/steady_time.h"

namespace baton {
namespace {

// A request that crosses a draining router's GOAWAY on the wire ends with CANCELLED before its answer begins. Sent
// again, the request reaches another router.
constexpr char kServiceConfig[] = R"({"methodConfig": [{
    "name": [{"service": "baton.v1.Inference"}],
    "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.05s", "maxBackoff": "1s", "backoffMultiplier": 2,
                    "retryableStatusCodes": ["CANCELLED"]}}]})";

void SetTimeout(grpc::ClientContext& context, absl::Duration timeout) {
  if (timeout < absl::InfiniteDuration()) context.set_deadline(GrpcDeadline(timeout));
}

// Returns why `channel` could not connect. gRPC tells the reason to the next call that fails on the channel.
std::string ConnectFailure(const std::string& target, const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(1));
  v1::ListModelsResponse unused;
  const grpc::Status status = v1::Inference::NewStub(channel)->ListModels(&context, {}, &unused);
  const std::string reason = status.error_message();
  if (absl::StrContains(reason, "Connection refused")) {
    return absl::StrCat("nothing listens at ", target, " (connection refused): is baton-router running there? ",
                        "--target HOST:PORT names another place");
  }
  if (absl::StrContains(reason, "DNS resolution failed") || absl::StrContains(reason, "resolve")) {
    return absl::StrCat("cannot resolve ", target, ": expected --target HOST:PORT (", reason, ")");
  }
  return absl::StrCat("cannot connect to ", target, reason.empty() ? "" : ": ", reason);
}

}  // namespace

std::string Reason(const grpc::Status& status, const std::string& limit) {
  switch (status.error_code()) {
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return limit.empty() ? status.error_message() : absl::StrCat("not done within ", limit);
    case grpc::StatusCode::UNIMPLEMENTED:
      // When the server lacks the service, gRPC's message is empty.
      return absl::StrCat(status.error_message(), status.error_message().empty() ? "" : "; ",
                          "expected a baton-router");
    default: return status.error_message();
  }
}

std::string TimeoutWords(absl::Duration timeout) {
  return timeout < absl::InfiniteDuration() ? absl::StrCat("--timeout ", absl::FormatDuration(timeout)) : "";
}

bool IsComplete(bool has_finish, const grpc::Status& status) {
  return status.ok() || (has_finish && status.error_code() == grpc::StatusCode::UNAVAILABLE);
}

Client::Client(std::string target, const std::shared_ptr<grpc::Channel>& channel)
    : target_(std::move(target)), inference_(v1::Inference::NewStub(channel)), admin_(v1::Admin::NewStub(channel)) {}

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const std::string& target, absl::Duration timeout,
                                                        Interrupt& interrupt) {
  const std::shared_ptr<grpc::Channel> channel = MakeChannel(target, {.service_config = kServiceConfig});
  const SteadyTime deadline = SteadyTime::Now() + timeout;
  while (true) {
    const grpc_connectivity_state state = channel->GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_READY) return std::unique_ptr<Client>(new Client(target, channel));
    if (interrupt.triggered()) return absl::CancelledError("interrupted");
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN) {
      const std::string why = ConnectFailure(target, channel);
      if (interrupt.triggered()) return absl::CancelledError("interrupted");  // Ctrl-C may have ended the router, too
      // A server on a busy machine may take longer than gRPC gives one attempt.
      const bool was_slow = absl::StrContains(why, "handshaker shutdown") && state == GRPC_CHANNEL_TRANSIENT_FAILURE;
      if (!was_slow || SteadyTime::Now() >= deadline) return absl::UnavailableError(why);
    }
    if (SteadyTime::Now() >= deadline) {
      return absl::UnavailableError(absl::StrCat("no answer from ", target, " within ", absl::FormatDuration(timeout),
                                                 ": expected a reachable baton-router"));
    }
    // Wait in slices, so that an interrupt is noticed.
    channel->WaitForStateChange(state, GrpcDeadline(std::min(deadline - SteadyTime::Now(), absl::Milliseconds(100))));
  }
}

absl::StatusOr<v1::Finish> Client::Generate(const v1::GenerateRequest& request, absl::Duration timeout,
                                            Interrupt& interrupt,
                                            absl::FunctionRef<bool(const v1::GenerateResponse&)> on_message) {
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  std::optional<v1::Finish> finish;
  grpc::Status status;
  {
    const Interrupt::Scope scope(interrupt, [&context] { context.TryCancel(); });
    const auto reader = inference_->Generate(&context, request);
    v1::GenerateResponse response;
    while (reader->Read(&response)) {
      if (response.has_finish()) finish = response.finish();
      if (!on_message(response)) context.TryCancel();
    }
    status = reader->Finish();
  }
  if (!IsComplete(finish.has_value(), status)) {
    if (interrupt.triggered()) return absl::CancelledError("interrupted");
    return Explain(status, TimeoutWords(timeout));
  }
  if (!finish.has_value()) {
    return absl::InternalError(absl::StrCat(target_, " ended the stream without its finish message"));
  }
  return *std::move(finish);
}

absl::StatusOr<v1::GetStatusResponse> Client::GetStatus(absl::Duration timeout) {
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  v1::GetStatusResponse response;
  const grpc::Status status = admin_->GetStatus(&context, {}, &response);
  if (!status.ok()) return Explain(status, absl::FormatDuration(timeout));
  return response;
}

absl::StatusOr<std::string> Client::ChangeWorkerRole(const v1::ChangeWorkerRoleRequest& request,
                                                     absl::Duration timeout) {
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  v1::ChangeWorkerRoleResponse response;
  const grpc::Status status = admin_->ChangeWorkerRole(&context, request, &response);
  if (!status.ok()) return Explain(status, absl::FormatDuration(timeout));
  return response.from();
}

absl::StatusOr<v1::Trace> Client::GetTrace(const std::string& id, absl::Duration timeout) {
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  v1::GetTraceRequest request;
  request.set_id(id);
  v1::Trace response;
  const grpc::Status status = admin_->GetTrace(&context, request, &response);
  if (!status.ok()) return Explain(status, absl::FormatDuration(timeout));
  return response;
}

absl::StatusOr<v1::ListModelsResponse> Client::ListModels(absl::Duration timeout) {
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  v1::ListModelsResponse response;
  const grpc::Status status = inference_->ListModels(&context, {}, &response);
  if (!status.ok()) return Explain(status, absl::FormatDuration(timeout));
  return response;
}

absl::Status Client::Explain(const grpc::Status& status, const std::string& limit) const {
  const absl::StatusCode code = FromGrpc(status).code();
  // The client usually notices a deadline before the server does.
  const char* const verb = code == absl::StatusCode::kDeadlineExceeded ? ": " : " answered ";
  const std::string reason = Reason(status, limit);
  return absl::Status(code,
                      absl::StrCat(target_, verb, absl::StatusCodeToString(code), reason.empty() ? "" : ": ", reason));
}

}  // namespace baton
