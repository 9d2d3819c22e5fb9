// SPDX-License-Identifier: Apache-2.0
// Queries the standard gRPC services that every process of Baton offers.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace baton::testing {

// Returns the raw answer of grpc.health.v1, a HealthCheckResponse.
absl::StatusOr<std::string> CheckHealth(const std::string& target);
inline constexpr char kServing[] = "\x08\x01";     // {status: SERVING}
inline constexpr char kNotServing[] = "\x08\x02";  // {status: NOT_SERVING}

// Returns the names of services by server reflection of `version`, "v1" or "v1alpha".
absl::StatusOr<std::vector<std::string>> ListServices(const std::string& target, const std::string& version);
// Returns the names of a service's methods, from the protocol file that the server sends.
absl::StatusOr<std::vector<std::string>> ListMethods(const std::string& target, const std::string& version,
                                                     const std::string& service);

}  // namespace baton::testing
