// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/handoff/messages.h"

#include "common/split_mix.h"
#include "common/strings.h"

namespace baton::handoff {
namespace {

uint64_t Mix(uint64_t x) { return SplitMix(x + kSplitMixStep); }

}  // namespace

const AttemptKey& KeyOf(const Message& message) {
  return std::visit([](const auto& m) -> const AttemptKey& { return m.key; }, message);
}

Outcome OutcomeOf(const Refused& refused) {
  Outcome outcome = FromPeer(Outcome(refused.cause, Concat("reservation refused, ", Name(refused.cause),
                                                           refused.detail.empty() ? "" : ": ", refused.detail)));
  outcome.retry_after = refused.retry_after;
  return outcome;
}

Outcome OutcomeOf(const Committed& committed) {
  Outcome outcome =
      FromPeer(Outcome(committed.cause, Concat("the decode worker dropped the sequence: ", committed.error)));
  // The puts and the grant do not match: the message does not tell which side is wrong.
  if (committed.cause == Cause::kInternal) outcome.at_fault = Fault::kPair;
  return outcome;
}

Outcome OutcomeOf(const Aborted& aborted) {
  Outcome outcome = FromPeer(Outcome(aborted.cause, Concat("the writer aborted: ", Name(aborted.cause))));
  // The writer could not use the grant: the message does not tell which side is wrong.
  if (aborted.cause == Cause::kInternal) outcome.at_fault = Fault::kPair;
  return outcome;
}

StreamId StreamOf(const AttemptKey& key) { return Mix(Mix(Mix(key.request.high) ^ key.request.low) ^ key.attempt); }

uint64_t BlockTag(int layer, PageId destination) {
  return Mix((uint64_t(uint32_t(layer)) << 32) | ToIndex(destination));
}

uint64_t CommitTag(const AttemptKey& key, int tokens, uint64_t sum_of_block_tags) {
  return Mix(Mix(StreamOf(key) ^ uint64_t(uint32_t(tokens))) ^ sum_of_block_tags);
}

}  // namespace baton::handoff
