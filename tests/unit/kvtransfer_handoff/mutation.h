// SPDX-License-Identifier: Apache-2.0
// The faults that the explorer must find.
#pragma once

#include <cstdint>

namespace baton::handoff {

// A rule that the world breaks on the machines' behalf. Each must be found out.
enum class Mutation : uint8_t {
  kNone,
  kFreeAtRevoke,           // decode frees a grant when it sends Revoke, not at the fence
  kFreeOnSilence,          // decode frees the grants of a peer that is only silent
  kKeepGrantsOfRevoked,    // decode does not hear that a peer was revoked
  kCommitBeforeFlush,      // prefill does not wait for the flush before Commit
  kAbortedBeforeFlush,     // ... before Aborted
  kFenceAfterFailedFlush,  // prefill takes a failed flush for a complete one
  kReleaseSourceAtAbort,   // prefill gives its page back when it aborts, not when the flush is done
  kPutAfterRevoke,         // prefill does not look at its state before a put
  kForgetCancelReserve,    // prefill withdraws without saying so
  kForgetAborted,          // prefill never sends Aborted
  kIgnoreUnknownGrant,     // prefill does not answer a Granted that crossed its withdrawal
  kForgetCommitted,        // decode never answers Commit
  kForgetRevoke,           // decode never sends Revoke
  kCommitKeepsGrant,       // decode runs the sequence and still thinks it granted
  kCommitAfterClose,       // decode does not know that a granted attempt was closed
  kNoGrowthPage,           // decode grants the prompt's page alone
  kWaitForProof,           // nobody hears that a peer was given up, only that it was revoked
  kWantsSharedPage,        // decode takes the page that others read for one of the attempt's own
};

}  // namespace baton::handoff
