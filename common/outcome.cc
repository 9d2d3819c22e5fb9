// SPDX-License-Identifier: Apache-2.0
#include "common/outcome.h"

#include <utility>

#include "common/strings.h"

namespace baton {
namespace {

// How long who finds no room should wait before the next try.
constexpr absl::Duration kRetryAfter = absl::Milliseconds(200);

enum class Transfer : uint8_t { kSound, kFailed };
enum class Pair : uint8_t { kSound, kBroken };
enum class Attempt : uint8_t { kFree, kCounts };

struct Traits {
  std::string_view name;
  Fault fault;
  Transfer transfer;
  Pair pair;
  Attempt attempt;
  NextStep next;
};

constexpr Traits TraitsOf(Cause cause) {
  switch (cause) {
#define CAUSE(id, number, name, fault, transfer, pair, attempt, next) \
  case Cause::id: return {name, Fault::fault, Transfer::transfer, Pair::pair, Attempt::attempt, NextStep::next};
#include "common/outcomes.def"
  }
  return {"?", Fault::kReporter, Transfer::kFailed, Pair::kSound, Attempt::kCounts, NextStep::kRetry};
}

}  // namespace

Outcome::Outcome(Cause why, std::string text) : Outcome(why, DefaultFault(why), std::move(text)) {}

Outcome::Outcome(Cause why, Fault fault, std::string text) : cause(why), at_fault(fault), detail(std::move(text)) {
  if (NextStepAfter(why) == NextStep::kFindRoom) retry_after = kRetryAfter;
}

std::string Outcome::ToString() const {
  return Concat(Name(cause), " (fault of ", Name(at_fault), ")", detail.empty() ? "" : ": ", detail);
}

std::string_view Name(Cause cause) { return TraitsOf(cause).name; }

std::string_view Name(Fault fault) {
  switch (fault) {
    case Fault::kNobody: return "nobody";
    case Fault::kClient: return "client";
    case Fault::kReporter: return "reporter";
    case Fault::kPeer: return "peer";
    case Fault::kPair: return "pair";
  }
  return "?";
}

bool IsCause(int number) {
  switch (number) {
#define CAUSE(id, number, name, fault, transfer, pair, attempt, next) case number:
#include "common/outcomes.def"
    return true;
    default: return false;
  }
}

bool IsFault(int number) { return number >= int(Fault::kNobody) && number <= int(Fault::kPair); }

Fault DefaultFault(Cause cause) { return TraitsOf(cause).fault; }
NextStep NextStepAfter(Cause cause) { return TraitsOf(cause).next; }
bool CountsAsAttempt(Cause cause) { return TraitsOf(cause).attempt == Attempt::kCounts; }
bool FailsKvTransfer(Cause cause) { return TraitsOf(cause).transfer == Transfer::kFailed; }

bool BreaksPair(const Outcome& outcome) {
  return TraitsOf(outcome.cause).pair == Pair::kBroken || outcome.at_fault == Fault::kPair;
}

bool AvoidsReporter(const Outcome& outcome) { return outcome.at_fault == Fault::kReporter; }
bool AvoidsPeer(const Outcome& outcome) { return outcome.at_fault == Fault::kPeer; }

Outcome FromPeer(Outcome reported) {
  if (reported.at_fault == Fault::kReporter) {
    reported.at_fault = Fault::kPeer;
  } else if (reported.at_fault == Fault::kPeer) {
    reported.at_fault = Fault::kReporter;
  }
  return reported;
}

}  // namespace baton
