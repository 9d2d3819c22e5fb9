// SPDX-License-Identifier: Apache-2.0
#include "router/services.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/grpc.h"
#include "common/grpc_message.h"
#include "common/status_macros.h"
#include "router/chat_input.h"

namespace baton::router {
namespace {

template <typename Request, typename Response, typename Work>
grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* call, const grpc::ByteBuffer& request_bytes,
                                 grpc::ByteBuffer& response_bytes, const Work& work) {
  Request request;
  Response response;
  absl::Status status = ParseMessage(request_bytes, request);
  if (status.ok()) status = work(request, response);
  if (status.ok()) response_bytes = SerializeMessage(response);
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

absl::Status TokenizeInput(WorkerRegistry& registry, const v1::TokenizeRequest& request,
                           v1::TokenizeResponse& response) {
  BATON_ASSIGN_OR_RETURN(const ServedModel model, registry.FindModel(request.model()));
  std::string text = request.prompt();
  bool add_special_tokens = !request.has_add_special_tokens() || request.add_special_tokens();
  if (request.has_chat()) {
    BATON_ASSIGN_OR_RETURN(const Conversation conversation, ReadChat(request.chat(), "chat"));
    BATON_ASSIGN_OR_RETURN(text, model.assets->RenderChat(conversation, "chat"));
    response.set_rendered(text);
    add_special_tokens = false;
  } else if (!request.has_prompt()) {
    return absl::InvalidArgumentError("input: none; expected one of prompt, chat");
  }
  BATON_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, model.assets->tokenizer->Encode(text, add_special_tokens));
  response.mutable_token_ids()->Assign(ids.begin(), ids.end());
  return absl::OkStatus();
}

absl::Status DetokenizeInput(WorkerRegistry& registry, const v1::DetokenizeRequest& request,
                             v1::DetokenizeResponse& response) {
  BATON_ASSIGN_OR_RETURN(const ServedModel model, registry.FindModel(request.model()));
  const std::vector<TokenId> ids(request.token_ids().begin(), request.token_ids().end());
  const bool skip = !request.has_skip_special_tokens() || request.skip_special_tokens();
  absl::StatusOr<std::string> text = model.assets->tokenizer->Decode(ids, skip);
  if (!text.ok()) return absl::Status(text.status().code(), absl::StrCat("token_ids: ", text.status().message()));
  response.set_text(*std::move(text));
  return absl::OkStatus();
}

absl::Status CheckRoleChange(RoleChanges allowed, const v1::ChangeWorkerRoleRequest& request) {
  if (allowed == RoleChanges::kOff) {
    return absl::PermissionDeniedError("this router changes no roles for clients: it runs with --role-changes off");
  }
  if (request.force() && allowed != RoleChanges::kForced) {
    return absl::PermissionDeniedError(
        "force: this router forces no changes, only one with --role-changes forced does");
  }
  return absl::OkStatus();
}

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* InferenceService::Generate(grpc::CallbackServerContext* call,
                                                                       const grpc::ByteBuffer* request) {
  return GenerateCall::Start(context_, call, *request);
}

grpc::ServerUnaryReactor* InferenceService::Tokenize(grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
                                                     grpc::ByteBuffer* response) {
  return Answer<v1::TokenizeRequest, v1::TokenizeResponse>(
      call, *request, *response,
      [this](const auto& in, auto& out) { return TokenizeInput(*context_.registry, in, out); });
}

grpc::ServerUnaryReactor* InferenceService::Detokenize(grpc::CallbackServerContext* call,
                                                       const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return Answer<v1::DetokenizeRequest, v1::DetokenizeResponse>(
      call, *request, *response,
      [this](const auto& in, auto& out) { return DetokenizeInput(*context_.registry, in, out); });
}

grpc::ServerUnaryReactor* InferenceService::ListModels(grpc::CallbackServerContext* call,
                                                       const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return Answer<v1::ListModelsRequest, v1::ListModelsResponse>(call, *request, *response,
                                                               [this](const auto& /*in*/, auto& out) {
                                                                 context_.registry->Describe(out);
                                                                 return absl::OkStatus();
                                                               });
}

grpc::ServerUnaryReactor* AdminService::GetStatus(grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
                                                  grpc::ByteBuffer* response) {
  return Answer<v1::GetStatusRequest, v1::GetStatusResponse>(
      call, *request, *response, [this](const auto& /*in*/, auto& out) {
        context_.registry->Describe(out);
        *out.mutable_router() = context_.facts;
        out.set_running_requests(static_cast<uint32_t>(context_.admission->running()));
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* AdminService::GetTrace(grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
                                                 grpc::ByteBuffer* response) {
  return Answer<v1::GetTraceRequest, v1::Trace>(
      call, *request, *response, [this](const auto& in, auto& out) -> absl::Status {
        if (in.id().empty()) {
          return absl::InvalidArgumentError("id: empty, expected a request id, a trace id or a request label");
        }
        BATON_ASSIGN_OR_RETURN(out, context_.tracer->Find(in.id()));
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* AdminService::ChangeWorkerRole(grpc::CallbackServerContext* call,
                                                         const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  grpc::ServerUnaryReactor* const reactor = call->DefaultReactor();
  v1::ChangeWorkerRoleRequest parsed;
  absl::Status status = ParseMessage(*request, parsed);
  if (status.ok()) status = CheckRoleChange(context_.role_changes, parsed);
  if (!status.ok()) {
    reactor->Finish(ToGrpc(status));
    return reactor;
  }
  context_.registry->ChangeRole({.id = parsed.worker_id(),
                                 .role = parsed.role(),
                                 .expected = v1::WORKER_ROLE_UNSPECIFIED,
                                 .force = parsed.force(),
                                 .reason = "asked for by a client of the router"},
                                [reactor, response](const absl::StatusOr<std::string>& from) {
                                  if (from.ok()) {
                                    v1::ChangeWorkerRoleResponse answer;
                                    answer.set_from(*from);
                                    *response = SerializeMessage(answer);
                                  }
                                  reactor->Finish(ToGrpc(from.status()));
                                });
  return reactor;
}

}  // namespace baton::router
