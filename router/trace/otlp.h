// SPDX-License-Identifier: Apache-2.0
// Traces in OpenTelemetry's protocol. Spans of one process share a resource, whose service.name is the process's role:
// baton-router or baton-worker.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "baton/v1/inference.pb.h"

namespace baton::router {

// Returns the bytes of an ExportTraceServiceRequest.
std::string ToOtlp(std::span<const std::shared_ptr<const v1::Trace>> traces);

}  // namespace baton::router
