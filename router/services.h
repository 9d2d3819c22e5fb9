// The gRPC services for clients and operators. For .cc files (gRPC). Thread-safe, without state of their own.
#pragma once

#include <grpcpp/grpcpp.h>

#include "baton/v1/inference.grpc.pb.h"
#include "router/generate_call.h"

namespace baton::router {

class InferenceService : public v1::Inference::CallbackService {
 public:
  explicit InferenceService(const ServiceContext& context) : context_(context) {}

  grpc::ServerWriteReactor<v1::GenerateResponse>* Generate(grpc::CallbackServerContext* call,
                                                           const v1::GenerateRequest* request) override;
  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* call, const v1::TokenizeRequest* request,
                                     v1::TokenizeResponse* response) override;
  grpc::ServerUnaryReactor* Detokenize(grpc::CallbackServerContext* call, const v1::DetokenizeRequest* request,
                                       v1::DetokenizeResponse* response) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* call, const v1::ListModelsRequest* request,
                                       v1::ListModelsResponse* response) override;

 private:
  const ServiceContext& context_;
};

class AdminService : public v1::Admin::CallbackService {
 public:
  explicit AdminService(const ServiceContext& context) : context_(context) {}

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* call, const v1::GetStatusRequest* request,
                                      v1::GetStatusResponse* response) override;

 private:
  const ServiceContext& context_;
};

}  // namespace baton::router
