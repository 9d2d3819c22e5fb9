// SPDX-License-Identifier: Apache-2.0
// Unary calls to workers on gRPC's callback API, in the groups of stream_call.h.
//
// For the router's .cc files only (gRPC).
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/grpc.h"
#include "router/stream_call.h"

namespace baton::router {

// Starts a call within `timeout`. `method` is a stub's async method, bound. `on_end` runs once, on a thread of gRPC.
// The call keeps itself alive until then.
template <typename Request, typename Response>
void StartUnaryCall(std::shared_ptr<CallGroup> group, absl::Duration timeout, Request request,
                    const std::function<void(grpc::ClientContext*, const Request*, Response*,
                                             std::function<void(grpc::Status)>)>& method,
                    std::function<void(absl::Status)> on_end) {
  struct Call {
    std::shared_ptr<CallGroup> group;
    Request request;
    std::function<void(absl::Status)> on_end;
    grpc::ClientContext context = {};
    Response response = {};
  };
  const auto call = std::make_shared<Call>(std::move(group), std::move(request), std::move(on_end));
  call->context.set_deadline(GrpcDeadline(timeout));
  const bool open = call->group->Add(&call->context, call);
  method(&call->context, &call->request, &call->response, [call](const grpc::Status& status) {
    call->on_end(FromGrpc(status));
    call->group->Remove(&call->context);
  });
  if (!open) call->context.TryCancel();
}

}  // namespace baton::router
