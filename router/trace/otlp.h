// SPDX-License-Identifier: Apache-2.0
// Traces in OpenTelemetry's protocol. Spans of one process share a resource, whose service.name is the process's role:
// baton-router or baton-worker.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "router/trace/trace_record.h"

namespace baton::router {

// Returns the bytes of an ExportTraceServiceRequest.
std::string ToOtlp(std::span<const std::shared_ptr<const TraceRecord>> traces);

}  // namespace baton::router
