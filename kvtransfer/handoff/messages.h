// SPDX-License-Identifier: Apache-2.0
// The messages of the handoff protocol, as values. kvtransfer/wire turns them into bytes and back.
//
//   message        from    to        means
//   Reserve        writer  receiver  pages wanted for a prompt
//   Queued         back              waits for pages and a batch slot
//   Granted        back              destination pages: the writer may put
//   Refused        back              final: nothing was granted and nothing will be
//   CancelReserve  writer  receiver  withdraws a reservation that is not granted yet
//   Commit         writer  receiver  a fence: everything was put and flushed; the sequence changes owner
//   Committed      back              the answer to Commit; with an error the sequence was dropped
//   Revoke         receiver writer   stop writing: the answer is a fence
//   Aborted        writer  receiver  a fence: the flush is complete, nothing more will be put
//
// Messages of one connection arrive in the order sent. Puts are not ordered with them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "common/ids.h"
#include "common/outcome.h"
#include "engine/kv/page_hash.h"
#include "engine/types.h"
#include "kvtransfer/peer.h"

namespace baton::handoff {

struct Reserve {
  AttemptKey key;
  int tokens = 0;                     // whose KV will be handed over
  std::vector<PageHash> page_hashes;  // of the prompt's full pages
  bool operator==(const Reserve&) const = default;
};

struct Queued {
  AttemptKey key;
  bool operator==(const Queued&) const = default;
};

struct Granted {
  AttemptKey key;
  std::vector<PageId> pages;  // destination page per source page, in prompt order
  std::vector<int> wanted;    // indexes into `pages` of the pages to put, ascending
  bool operator==(const Granted&) const = default;
};

struct Refused {
  AttemptKey key;
  Cause cause = Cause::kUnknownAttempt;
  std::string detail;
  absl::Duration retry_after = absl::ZeroDuration();  // zero: no hint
  bool operator==(const Refused&) const = default;
};

struct CancelReserve {
  AttemptKey key;
  bool operator==(const CancelReserve&) const = default;
};

struct Commit {
  AttemptKey key;
  int tokens = 0;
  std::vector<TokenId> output;  // of the attempt, as far as it is known: a prefill worker's first token
  uint64_t tag = 0;             // CommitTag of the put blocks
  bool operator==(const Commit&) const = default;
};

struct Committed {
  AttemptKey key;
  std::string error;               // empty: received
  Cause cause = Cause::kInternal;  // of an error
  bool operator==(const Committed&) const = default;
};

struct Revoke {
  AttemptKey key;
  bool operator==(const Revoke&) const = default;
};

// The cause of an Aborted says:
//   kFinished   the first token finished the request
//   kCancelled  the writer's worker aborted the handoff
//   kRevoked    the answer to Revoke
//   kPeerLost   the writer took the receiver for lost
//   kInternal   the writer could not use the grant
struct Aborted {
  AttemptKey key;
  Cause cause = Cause::kCancelled;
  bool operator==(const Aborted&) const = default;
};

using Message = std::variant<Reserve, Queued, Granted, Refused, CancelReserve, Commit, Committed, Revoke, Aborted>;

const AttemptKey& KeyOf(const Message& message);

// Returns the outcome of a handoff for the side that receives the message. `committed.error` must not be empty.
Outcome OutcomeOf(const Refused& refused);
Outcome OutcomeOf(const Committed& committed);
Outcome OutcomeOf(const Aborted& aborted);

// Returns the stream of a handoff's puts. Both sides derive the id from the key, so that no message carries the id.
// Request ids are random: the ids of two handoffs with one peer do not collide in 64 bits.
StreamId StreamOf(const AttemptKey& key);

// Returns the tag of a put block: one layer of one page. A sum of tags does not depend on the order of the puts.
uint64_t BlockTag(int layer, PageId destination);
// Returns the checksum of a Commit, which detects errors and protects against no attacker.
uint64_t CommitTag(const AttemptKey& key, int tokens, uint64_t sum_of_block_tags);

}  // namespace baton::handoff
