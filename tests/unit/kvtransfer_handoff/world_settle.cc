// SPDX-License-Identifier: Apache-2.0
// Which steps are taken at once, and what is forgotten.
#include <algorithm>

#include "world.h"

namespace baton::handoff {

void World::Settle() {
  Forget();
  bool again = true;
  while (again) {
    again = SettleRouter();
    for (int key = 0; key < kKeys; ++key) again |= SettleMessages(key);
    Forget();
  }
}

// The router's reaction to a failure only sends its cancels on their way, which may take any time.
bool World::SettleRouter() {
  const bool pair_lost = prefill_ == Process::kDead || decode_ == Process::kDead;
  bool changed = false;
  for (int r = 0; r < kRequests; ++r) {
    Request& request = requests_[size_t(r)];
    if (request.phase == Phase::kActive && (pair_lost || attempt(CurrentKey(r)).failed)) {
      EndAttempt(r);
      changed = true;
    }
    if (request.phase == Phase::kIdle && pair_lost) {
      request.phase = Phase::kDone;
      changed = true;
    }
  }
  return changed;
}

bool World::SettleMessages(int key) {
  Attempt& a = attempt(key);
  if (!a.to_prefill.empty() && PrefillUp()) {
    // Without the handoff nothing but the message itself is left to happen at prefill; of the others an abort that
    // comes first has the same outcome.
    const Message& m = a.to_prefill.front();
    const bool settles = !a.handoff || std::holds_alternative<Queued>(m) || std::holds_alternative<Refused>(m) ||
                         std::holds_alternative<Committed>(m);
    if (settles) {
      DeliverToPrefill(key);
      return true;
    }
  }
  if (!a.to_decode.empty() && DecodeUp()) {
    // Without the attempt decode refuses or ignores; a grant is not given back by CancelReserve.
    const std::optional<ReceiverMachine::State> state = receiver_.state(KeyOfIndex(key));
    const bool ignored =
        std::holds_alternative<CancelReserve>(a.to_decode.front()) && state != ReceiverMachine::State::kQueued;
    if (!state || ignored) {
      DeliverToDecode(key);
      return true;
    }
  }
  return false;
}

void World::Forget() {
  for (int key = 0; key < kKeys; ++key) {
    Attempt& a = attempt(key);
    a.failed = a.failed && IsCurrent(key);
    a.abort = a.abort && a.handoff;
    if (!receiver_.state(KeyOfIndex(key))) a.close = a.closed = false;
    if (!a.handoff && !receiver_.state(KeyOfIndex(key)) && !UnderWay(key) && a.to_decode.empty()) a.connection = 0;
  }
  for (int i = 0; i < kConnections; ++i) {
    // A peer that was given up and for which nothing waits counts as revoked.
    Connection& c = connections_[size_t(i)];
    const bool waits = std::any_of(attempts_.begin(), attempts_.end(),
                                   [&](const Attempt& a) { return a.handoff && a.connection == i; });
    if (c.prefill_view == PeerState::kGivenUp && !waits && !ReadsSource(i)) c.prefill_view = PeerState::kRevoked;
  }
  for (Connection& c : connections_) c.prefill_closing = c.prefill_closing && (c.prefill_holds() || c.decode_holds());
}

}  // namespace baton::handoff
