// What any of our gRPC servers tells of itself, through the standard services that every process offers.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace baton::testing {

// The raw answer of grpc.health.v1: kServing, or another HealthCheckResponse.
absl::StatusOr<std::string> CheckHealth(const std::string& target);
inline constexpr char kServing[] = "\x08\x01";  // {status: SERVING}

// Names of services, by server reflection of `version`, "v1" or "v1alpha".
absl::StatusOr<std::vector<std::string>> ListServices(const std::string& target, const std::string& version);
// The same for one service's methods, from the protocol file that the server sends.
absl::StatusOr<std::vector<std::string>> ListMethods(const std::string& target, const std::string& version,
                                                     const std::string& service);

}  // namespace baton::testing
