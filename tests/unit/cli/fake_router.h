// SPDX-License-Identifier: Apache-2.0
// An Inference and Admin service in the test's own process that answers as it is told, and the `baton` command line run
// against it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "baton/v1/inference.grpc.pb.h"
#include "cli/console/interrupt.h"
#include "common/grpc.h"
#include "common/mutex.h"

namespace baton::testing {

using GenerateHandler = std::function<grpc::Status(grpc::ServerContext&, const v1::GenerateRequest&,
                                                   grpc::ServerWriter<v1::GenerateResponse>&)>;

// Thread-safe but for the public members, which are to be set before the first call.
class FakeRouter final {
 public:
  FakeRouter();
  ~FakeRouter();

  std::string target() const;
  std::vector<v1::GenerateRequest> requests() const;

  GenerateHandler on_generate;  // default: EchoAnswer
  v1::GetStatusResponse status;
  v1::ListModelsResponse models;
  v1::Trace trace;                                       // of the one request whose id the router knows
  std::function<v1::GetStatusResponse()> on_get_status;  // default: `status`
  // Default: every change is FAILED_PRECONDITION.
  std::function<grpc::Status(const v1::ChangeWorkerRoleRequest&, FakeRouter& router)> on_change_role;

 private:
  class InferenceService;
  class AdminService;

  mutable Mutex mutex_;
  std::vector<v1::GenerateRequest> requests_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<InferenceService> inference_;
  std::unique_ptr<AdminService> admin_;
  std::unique_ptr<GrpcServer> server_;
};

v1::GenerateResponse MakeChunk(uint32_t output_index, const std::string& text, const std::vector<int32_t>& token_ids);
v1::GenerateResponse MakeFinish();

// Three chunks, "Hello", " world", "!", and a finish message.
grpc::Status EchoAnswer(grpc::ServerContext& context, const v1::GenerateRequest& request,
                        grpc::ServerWriter<v1::GenerateResponse>& writer);

struct CliResult {
  int code = 0;
  std::string out;
  std::string err;
};
// Runs `baton <arguments>` with `input` on its standard input. `interrupt`: as if Ctrl-C were pressed when it is
// triggered. With `output_fd`, the output goes there and not into the result.
CliResult RunCli(const std::vector<std::string>& arguments, const std::string& input = "",
                 Interrupt* interrupt = nullptr, int output_fd = -1);

}  // namespace baton::testing
