// SPDX-License-Identifier: Apache-2.0
// The command line's connection to a router, with errors that say what to do.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "baton/v1/inference.grpc.pb.h"

namespace baton {

class Interrupt;

inline constexpr std::string_view kDefaultTarget = "127.0.0.1:50051";
inline constexpr absl::Duration kConnectTimeout = absl::Seconds(5);
inline constexpr absl::Duration kCallTimeout = absl::Seconds(5);  // of calls that the router answers at once

// Returns why a call failed, in the server's words; may be empty. `limit` names the call's time limit to the user, such
// as "--timeout 30s"; empty: there is no limit.
std::string Reason(const grpc::Status& status, const std::string& limit);

// Returns whether a request's answer is complete. A router that ends may close the connection before the client has
// read the status behind the finish message.
bool IsComplete(bool has_finish, const grpc::Status& status);

// Returns, for instance, "--timeout 30s"; empty for an infinite timeout.
std::string TimeoutWords(absl::Duration timeout);

// Owns the connection. Thread-safe. Each error names the target.
class Client {
 public:
  // Connects, within `timeout`. UNAVAILABLE says whether nothing listens, the name does not resolve, or nobody answers.
  // CANCELLED when interrupted.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const std::string& target, absl::Duration timeout,
                                                         Interrupt& interrupt);

  // Runs one request to its end and returns the finish message. Blocks. `on_message` gets each message as it arrives,
  // and stops the request by returning false. CANCELLED when stopped or interrupted; DEADLINE_EXCEEDED after `timeout`,
  // which the error calls --timeout; otherwise the call's status.
  absl::StatusOr<v1::Finish> Generate(const v1::GenerateRequest& request, absl::Duration timeout, Interrupt& interrupt,
                                      absl::FunctionRef<bool(const v1::GenerateResponse&)> on_message);

  absl::StatusOr<v1::GetStatusResponse> GetStatus(absl::Duration timeout);
  // Asks `worker_id` to take `role`, and returns the former role once the worker has begun.
  absl::StatusOr<std::string> ChangeWorkerRole(const v1::ChangeWorkerRoleRequest& request, absl::Duration timeout);
  absl::StatusOr<v1::Trace> GetTrace(const std::string& id, absl::Duration timeout);
  absl::StatusOr<v1::ListModelsResponse> ListModels(absl::Duration timeout);

  v1::Inference::Stub& inference() { return *inference_; }
  const std::string& target() const { return target_; }

 private:
  Client(std::string target, const std::shared_ptr<grpc::Channel>& channel);
  absl::Status Explain(const grpc::Status& status, const std::string& limit) const;

  const std::string target_;
  const std::unique_ptr<v1::Inference::Stub> inference_;
  const std::unique_ptr<v1::Admin::Stub> admin_;
};

}  // namespace baton
