// SPDX-License-Identifier: Apache-2.0
// The scheduler's reports as messages of a worker's stream to the router.
#pragma once

#include <memory>

#include "baton/v1/worker.pb.h"
#include "worker/event_sink.h"
#include "worker/scheduler/attempt_events.h"

namespace baton {

// For a Prefill call, and for a Migrate call, which has the same events without a first token.
std::shared_ptr<AttemptEvents> ReportTo(std::shared_ptr<EventSink<v1::PrefillEvent>> sink);
// For a Decode call.
std::shared_ptr<AttemptEvents> ReportTo(std::shared_ptr<EventSink<v1::DecodeEvent>> sink);

}  // namespace baton
