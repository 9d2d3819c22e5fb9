// SPDX-License-Identifier: Apache-2.0
// The log lines of both endpoints about a connected peer.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/log.h"
#include "kvtransfer/peer.h"

namespace baton {

inline void LogPeerState(const std::string& worker, PeerState state, const absl::Status& why,
                         uint32_t pages_quarantined = 0) {
  switch (state) {
    case PeerState::kAlive: return Log(LogLevel::kInfo, "peer.heard_again", {{"peer", worker}});
    case PeerState::kSilent:
      return Log(LogLevel::kWarning, "peer.silent", {{"peer", worker}, {"pages_quarantined", pages_quarantined}});
    case PeerState::kGivenUp:
      return Log(LogLevel::kWarning, "peer.given_up",
                 {{"peer", worker}, {"status", why}, {"pages_quarantined", pages_quarantined}});
    case PeerState::kRevoked: return Log(LogLevel::kWarning, "peer.lost", {{"peer", worker}, {"status", why}});
  }
}

}  // namespace baton
