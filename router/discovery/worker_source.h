// SPDX-License-Identifier: Apache-2.0
// An entry of --workers or of the workers file.
//
//   entry               stands for
//   host:port           one worker
//   dns:///name:port    a worker at each address of the name: the A records, or without any, the AAAA records
//   dns:///_s._p.name   a worker at each target and port of the name's SRV records
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton::router {

struct WorkerSource {
  enum class Kind { kAddress, kAddressRecords, kServiceRecords };

  Kind kind = Kind::kAddress;
  std::string entry;  // as given
  std::string name;   // in DNS
  int port = 0;       // of address records
};

// INVALID_ARGUMENT quotes the entry and says what was expected.
absl::StatusOr<WorkerSource> ParseWorkerSource(std::string_view entry);

// Parses a workers file: an entry on each line; '#' begins a comment. INVALID_ARGUMENT names the line.
absl::StatusOr<std::vector<WorkerSource>> ParseWorkersFile(std::string_view text);

}  // namespace baton::router
