// SPDX-License-Identifier: Apache-2.0
// Which steps a world can take.
#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "world.h"

namespace baton::handoff {

const char* Name(StepKind kind) {
  constexpr const char* kNames[] = {
      "router starts an attempt of request",  // index: the request
      "router cancels request",
      "close arrives at decode for attempt",  // index: the attempt
      "abort arrives at prefill for attempt",
      "prefill puts for attempt",
      "prefill flushes ahead of the commit of attempt",
      "prefill commits attempt",
      "prefill finishes early attempt",
      "flush is done for attempt",
      "flush has failed for attempt",
      "decode gets the next message on attempt",
      "prefill gets the next message on attempt",
      "sequence ends, attempt",
      "decode sees silence on connection",  // index: the connection
      "decode sees life on connection",
      "decode gives up the peer of connection",
      "decode revokes the peer of connection",
      "prefill gives up the peer of connection",
      "prefill revokes the peer of connection",
      "prefill crashes",
      "prefill restarts",
      "decode crashes",
      "decode restarts",
  };
  static_assert(std::size(kNames) == size_t(StepKind::kCount));
  return kNames[size_t(kind)];
}

std::string Step::ToString() const { return absl::StrCat(handoff::Name(kind), " ", int(index)); }

std::vector<Step> World::Steps() const {
  std::vector<Step> steps;
  RouterSteps(&steps);
  PrefillSteps(&steps);
  NetworkSteps(&steps);
  FaultSteps(&steps);
  return steps;
}

void World::RouterSteps(std::vector<Step>* steps) const {
  for (uint8_t r = 0; r < kRequests; ++r) {
    const Phase phase = requests_[r].phase;
    const bool reachable = PrefillUp() && DecodeUp() && (UsableConnection() || CanConnect());
    if (phase == Phase::kIdle && reachable) steps->push_back({StepKind::kStart, r});
    if (phase == Phase::kActive) steps->push_back({StepKind::kCancel, r, /*fair=*/false});
  }
  for (uint8_t key = 0; key < kKeys; ++key) {
    if (attempt(key).close && DecodeUp()) steps->push_back({StepKind::kCloseArrives, key});
    if (attempt(key).abort && PrefillUp()) steps->push_back({StepKind::kAbortArrives, key});
    if (!attempt(key).running.empty() && DecodeUp()) steps->push_back({StepKind::kSequenceEnds, key});
  }
}

void World::PrefillSteps(std::vector<Step>* steps) const {
  if (!PrefillUp()) return;
  for (uint8_t key = 0; key < kKeys; ++key) {
    if (!attempt(key).handoff) continue;
    const Handoff& handoff = *attempt(key).handoff;
    const WriterMachine::State state = handoff.writer.state();
    const bool puts_anyway = mutation_ == Mutation::kPutAfterRevoke && handoff.granted;
    if (!handoff.put && (state == WriterMachine::State::kGranted || puts_anyway))
      steps->push_back({StepKind::kPut, key});
    if (handoff.put && state == WriterMachine::State::kGranted) {
      steps->push_back({StepKind::kFlushPuts, key});
      steps->push_back({StepKind::kCommit, key});
      steps->push_back({StepKind::kFinishEarly, key});
    }
    if (state == WriterMachine::State::kFlushed) {
      steps->push_back({StepKind::kCommit, key});
      steps->push_back({StepKind::kFinishEarly, key});
    }
    if (state == WriterMachine::State::kFlushing) {
      // A put that can neither land nor fail leaves with its connection.
      if (!UnderWay(key) || connection(key).decode_holds()) steps->push_back({StepKind::kFlushDone, key});
      // Of a peer that was given up, flushes end.
      const bool ends = connection(key).prefill_view == PeerState::kGivenUp;
      if (UnderWay(key) && (ends || !fault_)) steps->push_back({StepKind::kFlushFailed, key, /*fair=*/ends});
    }
  }
}

void World::NetworkSteps(std::vector<Step>* steps) const {
  for (uint8_t key = 0; key < kKeys; ++key) {
    if (!attempt(key).to_decode.empty() && DecodeUp()) steps->push_back({StepKind::kDeliverToDecode, key});
    if (!attempt(key).to_prefill.empty() && PrefillUp()) steps->push_back({StepKind::kDeliverToPrefill, key});
  }
  for (uint8_t i = 0; i < kConnections; ++i) {
    const Connection& c = connections_[i];
    if (!c.exists) continue;
    if (c.decode_holds() && DecodeUp()) {
      const bool silent = c.decode_view == PeerState::kSilent;
      const bool given_up = c.decode_view == PeerState::kGivenUp;
      const bool prefill_left = c.prefill_view >= PeerState::kGivenUp;
      if (!silent && !given_up && (!fault_ || !c.prefill_holds()))
        steps->push_back({StepKind::kDecodeSeesSilence, i, /*fair=*/false});
      if (silent && !prefill_left) steps->push_back({StepKind::kDecodeSeesAlive, i});
      // Prefill is gone, or it let go and said so.
      const bool proven = !c.prefill_holds() || (prefill_left && !ReadsSource(i));
      if (silent && !prefill_left) steps->push_back({StepKind::kDecodeGivesUp, i, /*fair=*/false});
      if (silent || given_up || proven) steps->push_back({StepKind::kDecodeRevokes, i, /*fair=*/proven});
    }
    if (c.prefill_holds() && PrefillUp()) {
      // Through shared memory it is given up, and nothing may ever prove that decode is gone.
      const bool given_up = c.prefill_view == PeerState::kGivenUp;
      const bool gone = !c.decode_holds() || c.prefill_closing;
      const bool lost = gone || c.decode_view == PeerState::kGivenUp;
      if (!given_up && (lost || !fault_)) steps->push_back({StepKind::kPrefillGivesUp, i, /*fair=*/lost});
      if (!given_up && (gone || !fault_)) steps->push_back({StepKind::kPrefillRevokes, i, /*fair=*/gone});
    }
  }
}

void World::FaultSteps(std::vector<Step>* steps) const {
  if (fault_) return;
  for (StepKind kind :
       {StepKind::kCrashPrefill, StepKind::kRestartPrefill, StepKind::kCrashDecode, StepKind::kRestartDecode}) {
    steps->push_back({kind, 0, /*fair=*/false});
  }
}

bool World::IsCurrent(int key) const {
  return requests_[size_t(key / kAttempts)].phase == Phase::kActive && CurrentKey(key / kAttempts) == key;
}

std::optional<uint8_t> World::UsableConnection() const {
  for (uint8_t i = 0; i < kConnections; ++i) {
    if (connections_[i].exists && connections_[i].prefill_view < PeerState::kGivenUp) return i;
  }
  return std::nullopt;
}

bool World::ReadsSource(int c) const {
  return std::any_of(puts_.begin(), puts_.end(),
                     [&](const PutInFlight& put) { return put.reads_source && attempt(put.key).connection == c; });
}

bool World::CanConnect() const { return !connections_[kConnections - 1].exists; }

bool World::UnderWay(int key) const {
  return std::any_of(puts_.begin(), puts_.end(), [&](const PutInFlight& put) { return put.key == key; });
}

}  // namespace baton::handoff
