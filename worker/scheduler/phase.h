// SPDX-License-Identifier: Apache-2.0
// The phase of an attempt, and the one function that changes it. phases.def is the table of all transitions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace baton {

enum class Phase : uint8_t {
#define PHASE(name, ...) k##name,
#include "worker/scheduler/phases.def"
};

enum class PhaseEvent : uint8_t {
  kReceived,
  kClaimed,
  kAdmittedToCompute,
  kAdmittedToReserve,
  kAdmittedToLoad,
  kNoRoomYet,
  kGranted,
  kFirstTokenToDecode,
  kFirstTokenToCommit,
  kCameToRest,
  kResumed,
  kEnded,
};

// Returns the phase that follows, or nullopt if the event changes nothing in `phase`.
constexpr std::optional<Phase> Next(Phase phase, PhaseEvent event) {
#define STEP(from, what, to) \
  if (phase == Phase::k##from && event == PhaseEvent::k##what) return Phase::k##to;
#include "worker/scheduler/phases.def"
  return std::nullopt;
}

constexpr std::string_view Name(Phase phase) {
  switch (phase) {
#define PHASE(name, ...) \
  case Phase::k##name: return #name;
#include "worker/scheduler/phases.def"
  }
  return "?";
}

}  // namespace baton
