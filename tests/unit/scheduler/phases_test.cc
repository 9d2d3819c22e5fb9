// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "worker/scheduler/phase.h"

namespace baton {
namespace {

struct Entry {
  Phase from;
  PhaseEvent event;
  Phase to;
};

const std::vector<Entry>& Table() {
  static const std::vector<Entry> table = {
#define STEP(from, event, to) {Phase::k##from, PhaseEvent::k##event, Phase::k##to},
#include "worker/scheduler/phases.def"
  };
  return table;
}

const std::vector<Phase>& Phases() {
  static const std::vector<Phase> phases = {
#define PHASE(name, ...) Phase::k##name,
#include "worker/scheduler/phases.def"
  };
  return phases;
}

TEST(Phases, AnEventLeadsFromAPhaseToOnePhase) {
  std::set<std::pair<Phase, PhaseEvent>> seen;
  for (const Entry& entry : Table()) {
    EXPECT_TRUE(seen.emplace(entry.from, entry.event).second) << Name(entry.from);
    EXPECT_EQ(Next(entry.from, entry.event), entry.to);
  }
}

TEST(Phases, EveryPhaseCanBeReachedAndEnds) {
  std::set<Phase> reached = {Phase::kAwaiting, Phase::kWaiting};
  for (size_t round = 0; round < Phases().size(); ++round) {
    for (const Entry& entry : Table()) {
      if (reached.contains(entry.from)) reached.insert(entry.to);
    }
  }
  for (const Phase phase : Phases()) {
    EXPECT_TRUE(reached.contains(phase)) << Name(phase);
    if (phase == Phase::kReleasing) continue;
    EXPECT_EQ(Next(phase, PhaseEvent::kEnded), Phase::kReleasing) << Name(phase);
  }
}

TEST(Phases, WhatComesTooLateChangesNothing) {
  EXPECT_EQ(Next(Phase::kReleasing, PhaseEvent::kEnded), std::nullopt);
  EXPECT_EQ(Next(Phase::kReleasing, PhaseEvent::kGranted), std::nullopt);
  EXPECT_EQ(Next(Phase::kComputing, PhaseEvent::kNoRoomYet), std::nullopt);
  EXPECT_EQ(Next(Phase::kCommitting, PhaseEvent::kGranted), std::nullopt);
  EXPECT_EQ(Next(Phase::kDecoding, PhaseEvent::kReceived), std::nullopt);
}

}  // namespace
}  // namespace baton
