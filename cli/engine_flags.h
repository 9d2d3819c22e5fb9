// Flags of the commands that run the engine in this process.
#pragma once

#include "engine/model/model.h"

namespace CLI {
class App;
}

namespace baton {

// --threads, --kernels, --quantize and --kv-dtype.
void AddEngineFlags(CLI::App& app, ModelOptions* options);

}  // namespace baton
