// SPDX-License-Identifier: Apache-2.0
// Connects `baton bench serve` to its target, whatever the target speaks.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/client.h"
#include "cli/commands/bench_serve_flags.h"
#include "cli/console/console.h"
#include "cli/load/load_target.h"
#include "cli/load/status_sampler.h"

namespace baton {

struct BenchTarget {
  std::unique_ptr<Client> client;  // null for an OpenAI-compatible server
  std::unique_ptr<LoadTarget> target;
  std::string model;
  uint32_t vocab_size = 0;
  int max_context_tokens = 0;  // 0: not known
};

// Connects and finds the model: the named one, or the only one served. Errors say what was expected.
absl::StatusOr<BenchTarget> ConnectBenchTarget(const BenchServeFlags& flags, const Console& console);

}  // namespace baton
