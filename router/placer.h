// SPDX-License-Identifier: Apache-2.0
// A Placer chooses the pair of workers for an attempt: the registry for clients' requests, a pinned pair for probes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "baton/v1/worker.pb.h"
#include "common/ids.h"
#include "engine/kv/page_hash.h"
#include "router/pin.h"
#include "router/request_spec.h"
#include "router/worker_ref.h"

namespace baton::router {

// The chosen pair. If the decode worker computes the prompt, `prefill` is the same worker. A placement for a migration
// has `pair` 0 and no `prefill`: the caller fills `prefill` in.
struct Placement {
  uint64_t pair = 0;
  bool local = false;
  WorkerRef prefill;
  WorkerRef decode;
  std::string model;
  std::string numerics_id;
  uint32_t cached_tokens = 0;  // estimate of the prompt's tokens that `prefill` has cached
  bool is_batch = false;       // served with priority batch: the request's own, or because it is late
  std::string estimates;       // if asked for: the cost of each of the best pairs, in seconds
};

struct PlacementQuery {
  std::string model;
  std::string assets_fingerprint;
  std::string numerics_id;     // of the first attempt; empty: any
  uint32_t prompt_tokens = 0;  // prior output included
  uint32_t total_tokens = 0;   // prompt and max_tokens
  std::vector<WorkerKey> avoid;
  std::vector<PageKey> pages;  // names of full pages of the prompt without its last token
  uint32_t page_tokens = 0;    // page size of `pages`; 0: no pages
  // A decode worker has the KV already: only another decode worker is needed, to which the first hands over.
  bool migrates = false;
  absl::Duration waited = {};                           // since the request was received
  absl::Duration time_left = absl::InfiniteDuration();  // until the deadline
  absl::Duration ttft_slo = {};                         // 0: none, or the first token is out
  absl::Duration tpot_slo = {};                         // 0: none
  RequestId request = {};
  absl::Time due = {};
  std::string tenant = {};
  bool is_batch = false;
  WhenLate when_late = WhenLate::kRefuse;
  bool has_begun = false;       // the client has tokens: the request is never late
  bool explain = false;         // fill in Placement::estimates
  std::optional<Pin> pin = {};  // the only workers that may serve the request
};

struct PlacementResult {
  enum class Kind {
    kPlaced,
    kOnlyAvoided,  // every ready pair has a worker to avoid
    kNoneReady,    // a live pair of workers exists, but no pair is ready; or a worker leaves, so a successor may come
    kNoneLive,     // neither, for the model's numerics id
    kLate,         // the first token would come too late
    kNoRoom,       // for now; ask again after a while
  };
  Kind kind = Kind::kNoneLive;
  Placement placement;              // kPlaced
  std::string detail;               // why nothing was placed; empty for kPlaced
  absl::Duration retry_after = {};  // estimate of when the request would be placed; 0: not known
  // kNoRoom: the request may wait as long as its deadline, because a later answer says kLate in time or because no
  // objective would be missed.
  bool may_wait = false;
};

// Thread-safe; does not block.
class Placer {
 public:
  virtual ~Placer() = default;
  virtual PlacementResult Place(const PlacementQuery& query) = 0;
  // Reports a failed handoff between the workers of `pair`: the pair takes no requests until a probe has passed.
  virtual void PairBroken(uint64_t pair, const std::string& why) = 0;
  // Reports what a handoff has measured of the path between the workers of `pair`.
  virtual void HandedOver(uint64_t pair, const v1::HandedOver& measured) = 0;
};

}  // namespace baton::router
