// SPDX-License-Identifier: Apache-2.0
// Visits every state that the world can reach, breadth first, so that a violation comes with a shortest way to it.
//
// States are told apart by a 64-bit hash: with the few million states there are, the chance that any two collide is
// below one in a million.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "world.h"

namespace baton::handoff {

struct Exploration {
  size_t states = 0;
  size_t steps = 0;
  size_t states_at_rest = 0;
  std::array<size_t, size_t(StepKind::kCount)> taken{};  // by kind of step
  // The first violation found, with the steps that lead to it; empty if there is none.
  std::string violation;
};

// Checks every state that can be reached from `start` (World::Violation), every one without fair steps
// (ViolationAtRest), and that fair steps alone always come to rest: they form no cycle. Stops at the first violation,
// or after `max_states` with one that says so.
Exploration Explore(const World& start, size_t max_states);

}  // namespace baton::handoff
