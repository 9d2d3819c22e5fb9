// SPDX-License-Identifier: Apache-2.0
// Causes, faults and outcomes as proto messages.
#pragma once

#include <optional>

#include "baton/v1/outcome.pb.h"
#include "common/outcome.h"

namespace baton {

v1::Cause ToProto(Cause cause);
// Nothing if this version does not know the cause.
std::optional<Cause> CauseFromProto(v1::Cause cause);

void FillFailed(const Outcome& outcome, v1::AttemptFailed* failed);
// An outcome as its reporter sees it. A cause of a newer version, or one that is no failure, reads as kInternal; a
// fault that is not given is the cause's default.
Outcome FromProto(const v1::AttemptFailed& failed);

}  // namespace baton
