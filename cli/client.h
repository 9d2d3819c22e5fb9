// The command line's connection to a router, and words for what goes wrong with it.
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

// Why a call failed, in the server's words where it has any: may be empty. `limit` is the call's time limit as the user
// knows it ("--timeout 30s"); empty for none.
std::string Reason(const grpc::Status& status, const std::string& limit);

// "--timeout 30s"; empty for an infinite one.
std::string TimeoutWords(absl::Duration timeout);

// Thread-safe. Every status it returns names the target.
class Client {
 public:
  // Waits until the connection stands, for `timeout` at most. UNAVAILABLE says what is in the way (nothing listens, the
  // name does not resolve, no answer); CANCELLED when interrupted.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const std::string& target, absl::Duration timeout,
                                                         Interrupt& interrupt);

  // Runs one request to its end. `on_message` sees every message as it arrives, and stops the request by returning
  // false. The finish message; CANCELLED when stopped or interrupted; else the call's status. Blocks. Who waits for
  // more than `timeout` is told that --timeout says so.
  absl::StatusOr<v1::Finish> Generate(const v1::GenerateRequest& request, absl::Duration timeout, Interrupt& interrupt,
                                      absl::FunctionRef<bool(const v1::GenerateResponse&)> on_message);

  absl::StatusOr<v1::GetStatusResponse> GetStatus(absl::Duration timeout);
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
