// Finds the pair of workers for an attempt: the registry for clients' requests, a pinned pair for probes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/kv/page_hash.h"
#include "router/worker_ref.h"

namespace baton::router {

// The chosen pair. When the decode worker prefills locally, `prefill` is the same worker. `pair` is 0, and `prefill`
// the caller's to fill in, where only a decode worker was looked for.
struct Placement {
  uint64_t pair = 0;
  bool local = false;
  WorkerRef prefill;
  WorkerRef decode;
  std::string model;
  std::string numerics_id;
  uint32_t cached_tokens = 0;  // of the prompt, that `prefill` is thought to have
};

struct PlacementQuery {
  std::string model;
  std::string assets_fingerprint;
  std::string numerics_id;     // empty: any; of the first attempt in later ones
  uint32_t prompt_tokens = 0;  // prior output included
  uint32_t total_tokens = 0;   // prompt and max_tokens
  std::vector<WorkerKey> avoid;
  std::vector<PageKey> pages;  // full ones of the prompt but for its last token
  uint32_t page_tokens = 0;    // that `pages` are made for; 0: no pages
  // A decode worker has the KV already: one that it can be handed over to is all that is looked for.
  bool migrates = false;
};

struct PlacementResult {
  enum class Kind {
    kPlaced,
    kOnlyAvoided,  // there are ready pairs, but each has a worker to avoid
    kNoneReady,    // workers are alive, no pair of them is ready
    kNoneLive,     // no live pair of workers with the model's numerics id
  };
  Kind kind = Kind::kNoneLive;
  Placement placement;  // kPlaced
  std::string detail;   // otherwise: what is missing
};

// Thread-safe; does not block.
class Placer {
 public:
  virtual ~Placer() = default;
  virtual PlacementResult Place(const PlacementQuery& query) = 0;
  // The handoff between the two failed: the pair is not used until it has been probed again.
  virtual void PairBroken(uint64_t pair, const std::string& why) = 0;
};

}  // namespace baton::router
