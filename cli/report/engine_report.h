// SPDX-License-Identifier: Apache-2.0
// Formats an EngineReport for people and for programs.
#pragma once

#include <string>

#include "cli/tools/measure_engine.h"

namespace baton {

std::string ToTable(const EngineBenchOptions& options, const EngineReport& report);
// Returns one line without its newline. Durations are in seconds, rates per second.
std::string ToJson(const EngineBenchOptions& options, const EngineReport& report);

}  // namespace baton
