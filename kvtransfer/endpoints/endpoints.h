// The two ends of a handoff, as the workers see them. They connect the handoff state machine (handoff/) with a
// Transport and a PagePool.
//
// Both are thread-safe. All callbacks are to be set; they run on the transport's I/O thread (or on the caller's, where
// said) with no lock held; they may call back and must not block.
//
// Lifetimes: an endpoint, or a pair of them, starts its transport, which has no other. Destroy the transport first,
// then the endpoints, then the pool; call nothing of an endpoint in between. No callback runs after the transport is
// gone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/ids.h"
#include "common/outcome.h"
#include "engine/kv/page_hash.h"
#include "engine/kv/page_pool.h"
#include "engine/types.h"
#include "kvtransfer/endpoints/capacity.h"
#include "kvtransfer/transport.h"

namespace baton {

// Who we are to our peers; a mismatch of version, numerics_id or layout refuses the pair.
struct HandoffIdentity {
  std::string worker_id;
  uint64_t epoch = 0;
  std::string numerics_id;
};

// ------------------------------------------------------------------------------------------------ decode side

struct ReceiverOptions {
  int max_attempts = 1024;                          // open at once, whatever their state
  absl::Duration hello_timeout = absl::Seconds(3);  // for a new peer's Hello
};

// A sequence that has changed owner: the KV of its first `tokens` tokens is in `pages`, which has one more to grow
// into.
struct ReceivedSequence {
  AttemptKey key;
  std::vector<PageRef> pages;
  int tokens = 0;
  int cached_tokens = 0;        // of them: in pages that were here already
  std::vector<TokenId> output;  // that the writer has sampled for this attempt
};

class HandoffReceiver {
 public:
  // At most one of them is called per attempt, once, and none for an attempt closed before; one that was under way when
  // CloseAttempt was called may still run: a sequence received for an attempt that is no longer known is to be dropped.
  struct Events {
    // The pages are complete; the receiver has sent Committed. The sequence holds a batch slot until CloseAttempt.
    std::function<void(ReceivedSequence)> on_received;
    // The attempt will not be received: refused, cancelled by the writer, writer lost, commit mismatch.
    std::function<void(AttemptKey, Outcome)> on_failed;
    // The writer finished the request itself (Aborted(finished)); everything is released.
    std::function<void(AttemptKey)> on_finished_by_writer;
  };

  // Listens through `transport`, which it starts. `pool` must be in a region of `transport`. `capacity`, which outlives
  // the receiver, decides who is granted.
  static absl::StatusOr<std::unique_ptr<HandoffReceiver>> Create(const HandoffIdentity& identity,
                                                                 const ReceiverOptions& options, Transport* transport,
                                                                 PagePool* pool, HandoffCapacity* capacity,
                                                                 Events events);
  virtual ~HandoffReceiver() = default;

  // The router opened the attempt of a request that arrived there at `arrival`: a writer may reserve for it.
  // ALREADY_EXISTS if it is open, FAILED_PRECONDITION if the same or a later attempt of this request was open before.
  virtual absl::Status OpenAttempt(const AttemptKey& key, absl::Time arrival) = 0;
  // The router has cancelled it, or its sequence left the batch (finished, preempted). Revokes what a writer holds; its
  // pages come back when the writer's fence arrives or the writer is revoked, and are quarantined while it is silent.
  // Idempotent.
  virtual void CloseAttempt(const AttemptKey& key) = 0;

  // The capacity has decisions to take. Sends the grants before it returns.
  virtual void Poke() = 0;
  // Refuses new attempts and new reservations (queued ones stay).
  virtual void StartDraining() = 0;

  struct Load {
    int queued = 0;
    int granted = 0;   // granted and not yet received or aborted
    int revoking = 0;  // closed or given up, the writer's fence or its end is awaited
    int received = 0;  // received and not yet closed
  };
  virtual Load load() const = 0;
};

// ------------------------------------------------------------------------------------------------ prefill side

struct SenderOptions {
  absl::Duration hello_timeout = absl::Seconds(3);  // for the answer to our Hello; connecting has the transport's own
};

struct HandoffTarget {
  std::string worker_id;
  uint64_t epoch = 0;
  std::string address;
};

struct HandoffStats {
  absl::Duration transfer;  // first put to Committed
  absl::Duration exposed;   // Commit asked for to Committed
  uint64_t bytes = 0;
  std::string transport;
};

class HandoffSender {
 public:
  // For one handoff. At most one of on_done and on_failed is called, once, last. After Abort neither is, except one
  // that was under way.
  struct Events {
    // The reservation waits at the decode worker: source pages may be given back meanwhile.
    std::function<void()> on_queued;
    std::function<void()> on_granted;
    std::function<void()> on_flushed;  // the answer to Flush
    // Refused, revoked, peer lost or the pair does not fit. Local pages are no longer read: they may be given back.
    std::function<void(Outcome)> on_failed;
    // Committed: the decode worker owns the sequence now.
    std::function<void(HandoffStats)> on_done;
  };

  static absl::StatusOr<std::unique_ptr<HandoffSender>> Create(const HandoffIdentity& identity, Transport* transport,
                                                               PagePool* pool, const SenderOptions& options = {});
  virtual ~HandoffSender() = default;

  // Connects to the target if need be and reserves pages for `tokens` tokens. An attempt is reserved for once: the same
  // or an older attempt of a request fails as revoked, a target that is silent or does not answer as peer_lost, more
  // hashes than fit into a message as too_large.
  virtual void Reserve(const AttemptKey& key, const HandoffTarget& target, int tokens, std::vector<PageHash> hashes,
                       Events events) = 0;

  // Layer `layer` of the prompt's pages [first_page, first_page + pages.size()) is complete; `pages` are ours, of
  // `pool`. Once per layer and page (the last page when its last token is in). Only after on_granted; ignored once the
  // handoff is revoked or failed. The pages must stay until on_done, on_failed or Abort's callback.
  virtual void PutLayer(const AttemptKey& key, int layer, int first_page, std::span<const PageId> pages) = 0;

  // Everything was put, but the sequence goes on until all has landed (on_flushed): a sequence that is decoded
  // meanwhile is at rest only for as long as Commit takes. Then nothing is left but Commit or Abort.
  virtual void Flush(const AttemptKey& key) = 0;

  // Everything was put: flush, unless that is done, then hand over. `output` is what was sampled for this attempt,
  // behind the prompt and prior output; the tokens without KV in the pages will be computed at the receiver.
  virtual void Commit(const AttemptKey& key, std::vector<TokenId> output) = 0;

  // Ends the handoff from our side: withdraws the reservation or fences what was put. `released` is called (on the I/O
  // thread, or at once on this one) when local pages are no longer read. `finished`: the first token already finished
  // the request. Unknown keys: `released` at once.
  virtual void Abort(const AttemptKey& key, bool finished, std::function<void()> released) = 0;
};

// ------------------------------------------------------------------------------------------------ both

// A decode worker that drains hands its sequences over as well: both endpoints on one transport.
class HandoffEndpoints {
 public:
  static absl::StatusOr<std::unique_ptr<HandoffEndpoints>> Create(const HandoffIdentity& identity,
                                                                  const ReceiverOptions& options, Transport* transport,
                                                                  PagePool* pool, HandoffCapacity* capacity,
                                                                  HandoffReceiver::Events events);
  virtual ~HandoffEndpoints() = default;
  virtual HandoffReceiver& receiver() = 0;
  virtual HandoffSender& sender() = 0;
};

}  // namespace baton
