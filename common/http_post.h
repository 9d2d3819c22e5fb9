// SPDX-License-Identifier: Apache-2.0
// One HTTP/1.1 POST, for sending telemetry to a collector nearby. No TLS, no redirects.
#pragma once

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/address.h"

namespace baton {

struct HttpTarget {
  HostPort address;
  std::string path;  // with a leading slash
};

// Parses "http://host:port/path". INVALID_ARGUMENT quotes the URL and says what was expected.
absl::StatusOr<HttpTarget> ParseHttpTarget(std::string_view url);

// Posts to `address`, "ip:port", where the target was found. Blocks until `time_left`, asked every 50 ms, is 0.
// UNAVAILABLE: no connection, no answer in time, or an answer that is not 2xx.
absl::Status HttpPost(const HttpTarget& target, std::string_view address, std::string_view content_type,
                      std::string body, absl::FunctionRef<absl::Duration()> time_left);

}  // namespace baton
