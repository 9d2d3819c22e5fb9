// SPDX-License-Identifier: Apache-2.0
// Server reflection v1 (proto/grpc/reflection/v1/reflection.proto) over the messages that are linked into the process.
//
// Usage: construct, Install, then build and start the server, which the service must outlive. Thread-safe from then on.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"

namespace baton {

class ReflectionService final : public grpc::reflection::v1::ServerReflection::CallbackService {
 public:
  // Registers the service, and has it told which services the server will have.
  void Install(grpc::ServerBuilder& builder);

  grpc::reflection::v1::ServerReflectionResponse Answer(
      const grpc::reflection::v1::ServerReflectionRequest& request) const;

 private:
  class Call;
  class Plugin;
  class Option;

  grpc::ServerBidiReactor<grpc::reflection::v1::ServerReflectionRequest,
                          grpc::reflection::v1::ServerReflectionResponse>*
  ServerReflectionInfo(grpc::CallbackServerContext* context) override;

  mutable Mutex mutex_;
  std::vector<std::string> services_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton
