// SPDX-License-Identifier: Apache-2.0
// The only file that knows version and revision: a new commit compiles nothing else.
#include "common/metrics_process.h"

namespace baton {

BuildInfo ThisBuild() { return {.version = BATON_VERSION, .revision = BATON_REVISION, .compiler = BATON_COMPILER}; }

}  // namespace baton
