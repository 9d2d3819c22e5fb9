// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/transport_options.h"

#include "absl/strings/str_cat.h"

namespace baton {

absl::Status CheckTransportOptions(const TransportOptions& options) {
  if (options.secret.empty()) {
    return absl::InvalidArgumentError("transport secret: must not be empty, and the same for all workers");
  }
  if (options.path != "auto" && options.path != "tcp" && options.path != "shm") {
    return absl::InvalidArgumentError(
        absl::StrCat("transport path: \"", options.path, "\", expected auto, tcp or shm"));
  }
  if (options.heartbeat_interval < absl::Milliseconds(1)) {
    return absl::InvalidArgumentError("transport heartbeat_interval: must be at least 1 ms");
  }
  if (options.silent_after <= options.heartbeat_interval || options.peer_timeout <= options.silent_after) {
    return absl::InvalidArgumentError(
        absl::StrCat("transport times: expected heartbeat_interval < silent_after < peer_timeout, got ",
                     absl::FormatDuration(options.heartbeat_interval), ", ", absl::FormatDuration(options.silent_after),
                     ", ", absl::FormatDuration(options.peer_timeout)));
  }
  if (options.connect_timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("transport connect_timeout: must be positive");
  }
  if (options.max_message_bytes == 0 || options.max_message_bytes > (size_t{1} << 30)) {
    return absl::InvalidArgumentError("transport max_message_bytes: expected 1 byte to 1 GiB");
  }
  return absl::OkStatus();
}

}  // namespace baton
