// SPDX-License-Identifier: Apache-2.0
// The gRPC services for clients and operators. For .cc files (gRPC). Thread-safe, without state of their own.
//
// Services take and return bytes, so that a request that does not parse gets an error text (common/grpc_message.h).
#pragma once

#include <grpcpp/grpcpp.h>

#include "baton/v1/inference.grpc.pb.h"
#include "router/generate_call.h"

namespace baton::router {

template <typename Base>
using RawInference = v1::Inference::WithRawCallbackMethod_Generate<v1::Inference::WithRawCallbackMethod_Tokenize<
    v1::Inference::WithRawCallbackMethod_Detokenize<v1::Inference::WithRawCallbackMethod_ListModels<Base>>>>;

class InferenceService : public RawInference<v1::Inference::Service> {
 public:
  explicit InferenceService(const ServiceContext& context) : context_(context) {}

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Generate(grpc::CallbackServerContext* call,
                                                       const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Detokenize(grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;

 private:
  const ServiceContext& context_;
};

class AdminService : public v1::Admin::WithRawCallbackMethod_GetStatus<v1::Admin::WithRawCallbackMethod_GetTrace<
                         v1::Admin::WithRawCallbackMethod_ChangeWorkerRole<v1::Admin::Service>>> {
 public:
  explicit AdminService(const ServiceContext& context) : context_(context) {}

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetTrace(grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ChangeWorkerRole(grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
                                             grpc::ByteBuffer* response) override;

 private:
  const ServiceContext& context_;
};

}  // namespace baton::router
