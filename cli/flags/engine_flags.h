// SPDX-License-Identifier: Apache-2.0
// Flags of the commands that run the engine in this process.
#pragma once

#include "cli/console/console.h"
#include "engine/model/model.h"

namespace CLI {
class App;
}

namespace baton {

// Adds --threads, --kernels, --quantize and --kv-dtype. On a terminal, loading shows its progress.
void AddEngineFlags(CLI::App& app, const Console& console, ModelOptions* options);

}  // namespace baton
