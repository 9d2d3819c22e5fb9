// SPDX-License-Identifier: Apache-2.0
// The process of a worker, for the mains of both programs. The process holds the services of every role. The gate
// opens the routes of the role that the worker has, so that a change of the role starts no other program.
//
// For the main thread.
#pragma once

#include "absl/status/status.h"
#include "baton/v1/worker.pb.h"
#include "worker/options.h"

namespace baton {

// Checks the options and serves until a signal, at first in `role`. INVALID_ARGUMENT names the option.
absl::Status RunWorker(WorkerOptions& options, v1::WorkerRole role);

}  // namespace baton
