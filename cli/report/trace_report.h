// SPDX-License-Identifier: Apache-2.0
// Formats the trace of a request: as a timeline for people, and as a file for ui.perfetto.dev.
#pragma once

#include <string>

#include "baton/v1/inference.pb.h"

namespace baton {

// Returns a line per stage: start and duration, the name, indented below its parent, the process, a bar on a common
// scale, and the attributes.
std::string TimelineOf(const v1::Trace& trace);

// Returns the spans as Chrome's trace events, which Perfetto reads. Each process is a track; time 0 is the
// request's arrival.
std::string PerfettoOf(const v1::Trace& trace);

}  // namespace baton
