// SPDX-License-Identifier: Apache-2.0
// The two ends of a handoff, as workers use them. An endpoint connects the state machines of handoff/ with a Transport
// and a PagePool.
//
// Endpoints are thread-safe. Set every callback. Callbacks run on the transport's I/O thread or on the caller's thread,
// with no lock held. A callback may call the endpoint and must not block.
//
// Lifetimes: an endpoint, or a pair of endpoints, starts the transport. Destroy the transport first, then the
// endpoints, then the pool, and call no endpoint in between. No callback runs after the transport is destroyed.
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

// A worker's identity in Hello and Welcome. A mismatch of version, numerics_id or layout refuses the pair.
struct HandoffIdentity {
  std::string worker_id;
  uint64_t epoch = 0;
  std::string numerics_id;
};

// ------------------------------------------------------------------------------------------------ decode side

struct ReceiverOptions {
  int max_attempts = 1024;                          // in all states together
  absl::Duration hello_timeout = absl::Seconds(3);  // for a new peer's Hello
};

// A sequence that has changed owner. `pages` hold the KV of the first `tokens` tokens; the last page is for growth.
struct ReceivedSequence {
  AttemptKey key;
  std::vector<PageRef> pages;
  int tokens = 0;
  int cached_tokens = 0;        // tokens in pages that this worker had published before
  std::vector<TokenId> output;  // sampled by the writer for this attempt
};

class HandoffReceiver {
 public:
  // At most one callback runs per attempt, once. No callback runs for an attempt closed before, but a callback may run
  // while CloseAttempt runs: drop a sequence whose attempt is unknown. No callback tells that the writer's first token
  // finished the request: the prefill worker's stream tells the router, which then closes the attempt.
  struct Events {
    // The pages are complete; the receiver has sent Committed. The sequence holds a batch slot until CloseAttempt.
    std::function<void(ReceivedSequence)> on_received;
    // The attempt will not be received: refused, cancelled by the writer, writer lost, commit mismatch.
    std::function<void(AttemptKey, Outcome)> on_failed;
  };

  virtual ~HandoffReceiver() = default;

  // Lets a writer reserve for the attempt of a request that is due at `due`. ALREADY_EXISTS: the
  // attempt is open. FAILED_PRECONDITION: this or a later attempt of the request was open before.
  virtual absl::Status OpenAttempt(const AttemptKey& key, absl::Time due) = 0;
  // Closes an attempt that was cancelled, or whose sequence has left the batch. Revokes the writer's grant: the pool
  // gets the pages back when the writer's fence arrives or the writer is revoked. Idempotent.
  virtual void CloseAttempt(const AttemptKey& key) = 0;

  // Takes the decisions of the HandoffCapacity and sends the grants before returning.
  virtual void Poke() = 0;
  // Refuses new attempts and new reservations. Queued reservations stay.
  virtual void StartDraining() = 0;
  // Takes new attempts and reservations again.
  virtual void StopDraining() = 0;

  struct Load {
    int queued = 0;
    int granted = 0;
    int revoking = 0;  // closed or given up; the receiver waits for the writer's fence or revocation
    int received = 0;  // and not yet closed
  };
  virtual Load load() const = 0;
};

// ------------------------------------------------------------------------------------------------ prefill side

struct SenderOptions {
  absl::Duration hello_timeout = absl::Seconds(3);  // for a target's Welcome
};

struct HandoffTarget {
  std::string worker_id;
  uint64_t epoch = 0;
  std::string address;
};

struct HandoffStats {
  absl::Duration transfer;  // first put to Committed
  absl::Duration exposed;   // call of Commit to Committed
  uint64_t bytes = 0;
  std::string transport;
};

class HandoffSender {
 public:
  // The callbacks of one handoff. The last callback is on_done or on_failed, called once. After Abort neither runs,
  // unless the callback had begun.
  struct Events {
    // The reservation waits at the decode worker. The caller may release the source pages in the meantime.
    std::function<void()> on_queued;
    std::function<void()> on_granted;
    std::function<void()> on_flushed;  // the answer to Flush
    // The handoff was refused or revoked, the peer is lost, or the pair does not fit. No put reads local pages any
    // more.
    std::function<void(Outcome)> on_failed;
    // The decode worker owns the sequence now.
    std::function<void(HandoffStats)> on_done;
  };

  static absl::StatusOr<std::unique_ptr<HandoffSender>> Create(const HandoffIdentity& identity, Transport* transport,
                                                               PagePool* pool, const SenderOptions& options = {});
  virtual ~HandoffSender() = default;

  // Connects to the target if necessary and reserves pages for `tokens` tokens. Causes of a failure:
  //   revoked    this or a later attempt of the request has reserved before
  //   peer_lost  the target is silent or does not answer
  //   too_large  the hashes do not fit into a message
  virtual void Reserve(const AttemptKey& key, const HandoffTarget& target, int tokens, std::vector<PageHash> hashes,
                       Events events) = 0;

  // Puts layer `layer` of the prompt's pages [first_page, first_page + pages.size()), which local `pages` hold
  // complete. Call after on_granted, once per layer and page. Ignored once the handoff is revoked or has failed. Keep
  // the pages until on_done, on_failed or Abort's callback.
  virtual void PutLayer(const AttemptKey& key, int layer, int first_page, std::span<const PageId> pages) = 0;

  // Flushes all puts while the sequence still decodes; on_flushed reports that all puts have landed. The sequence then
  // rests only for the time of Commit. Only Commit or Abort may follow.
  virtual void Flush(const AttemptKey& key) = 0;

  // Flushes all puts unless Flush has, then hands over. `output` is the output of this attempt, after the prompt and
  // prior output. The receiver computes the tokens whose KV is not in the pages.
  virtual void Commit(const AttemptKey& key, std::vector<TokenId> output) = 0;

  // Ends the handoff from this side: withdraws the reservation or fences the puts. Calls `released` when no put reads
  // local pages any more, on the I/O thread or at once on this thread. `finished`: the first token has finished the
  // request. For an unknown key, calls `released` at once.
  virtual void Abort(const AttemptKey& key, bool finished, std::function<void()> released) = 0;
};

// ------------------------------------------------------------------------------------------------ both

// Joins both endpoints on one transport, for a decode worker, which hands its sequences over while it drains.
class HandoffEndpoints {
 public:
  // Starts `transport` and listens. `pool` must be in a region of `transport`. `capacity` must outlive the endpoints.
  static absl::StatusOr<std::unique_ptr<HandoffEndpoints>> Create(const HandoffIdentity& identity,
                                                                  const ReceiverOptions& options, Transport* transport,
                                                                  PagePool* pool, HandoffCapacity* capacity,
                                                                  HandoffReceiver::Events events);
  virtual ~HandoffEndpoints() = default;
  virtual HandoffReceiver& receiver() = 0;
  virtual HandoffSender& sender() = 0;
};

}  // namespace baton
