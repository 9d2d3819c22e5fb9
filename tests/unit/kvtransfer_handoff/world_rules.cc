// SPDX-License-Identifier: Apache-2.0
// The rules of every state, and the rules of states at rest.
#include "world.h"

namespace baton::handoff {

std::string World::Violation() const {
  if (violation_ != nullptr) return violation_;
  if (pool_.misuse() != nullptr) return pool_.misuse();
  for (const PutInFlight& put : puts_) {
    if (CanLand(put)) {
      if (!pool_.used(put.page)) return "I1: a put can land in a free page";
      const PeerId peer = PeerId(attempt(put.key).connection);
      if (!receiver_.MayWrite(peer, StreamOf(KeyOfIndex(put.key)), ToIndex(put.page), 1)) {
        return "I1: a put can land in a page that is no longer granted to it";
      }
    }
    const std::optional<Handoff>& handoff = attempt(put.key).handoff;
    if (put.reads_source && (!handoff || handoff->source_released)) return "I1: a put reads a page that was given back";
  }
  for (int key = 0; key < kKeys; ++key) {
    const PeerId peer = PeerId(attempt(key).connection);
    if (receiver_.MayWrite(peer, StreamOf(KeyOfIndex(key)), ToIndex(kSharedPage), 1)) {
      return "I1: a page that others read may be written";
    }
  }
  for (const Attempt& attempt : attempts_) {
    for (PageId page : attempt.running) {
      if (!pool_.used(page)) return "I1: a running sequence's page is free";
    }
  }
  return Disagreement();
}

// When no message about an attempt is under way, and both sides hold its connection, they must agree about it.
std::string World::Disagreement() const {
  for (int key = 0; key < kKeys; ++key) {
    const Connection& c = connection(key);
    if (!c.carries() || c.prefill_closing) continue;
    if (!attempt(key).to_decode.empty() || !attempt(key).to_prefill.empty()) continue;
    const std::optional<ReceiverMachine::State> receiver = receiver_.state(KeyOfIndex(key));
    const std::optional<Handoff>& handoff = attempt(key).handoff;
    const WriterMachine::State writer = handoff ? handoff->writer.state() : WriterMachine::State::kEnded;
    const bool agree = [&] {
      switch (writer) {
        case WriterMachine::State::kQueued: return receiver == ReceiverMachine::State::kQueued;
        case WriterMachine::State::kGranted:
        case WriterMachine::State::kFlushed: return receiver == ReceiverMachine::State::kGranted;
        case WriterMachine::State::kFlushing:
          return receiver == ReceiverMachine::State::kGranted || receiver == ReceiverMachine::State::kRevoking;
        case WriterMachine::State::kEnded:
          return !receiver || receiver == ReceiverMachine::State::kOpen ||
                 receiver == ReceiverMachine::State::kReceived;
        default: return false;  // waits for an answer that is not under way
      }
    }();
    if (!agree) return "I2: the two sides disagree about an attempt, and no message is under way";
  }
  return "";
}

std::string World::ViolationAtRest() const {
  for (const Request& request : requests_) {
    if (request.phase != Phase::kDone) return "I2: a request is never resolved";
  }
  for (const Attempt& attempt : attempts_) {
    if (attempt.handoff) return "I2: a writer never ends";
    if (attempt.close && decode_ != Process::kDead) return "I2: a close never arrives";
  }
  if (decode_ == Process::kDead) return "";
  if (receiver_.counts() != ReceiverMachine::Counts{}) return "I3: the receiver's table is not empty";
  if (pool_.free_pages() != kPages || pool_.holders() != 0) return "I3: pages are lost";
  if (pool_.slots() != 0 || pool_.waiting() != 0) return "I3: a slot or a claim is lost";
  if (pool_.any_quarantined()) return "I3: quarantine is not empty";
  if (!puts_.empty()) return "I3: a put is still under way";
  return "";
}

}  // namespace baton::handoff
