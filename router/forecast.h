// SPDX-License-Identifier: Apache-2.0
// Foresees what becomes of a request on a pair of workers, and of the sequences beside. Pure functions of a snapshot:
// no threads, no clock, no I/O.
//
// The estimate of a pair is the time until the sequence decodes. The client gets the first token earlier, when the
// prompt is computed.
//
//   what waits at the prefill worker and what the prefill worker lacks of the prompt, over the speed it has measured
//   + the part of the KV transfer that outlasts the computation, over the measured bandwidth of the path
//   + the decode worker's step times the share of its batch slots in use, and the wait for a batch slot and pages
//
// Batch requests wait behind interactive requests: tokens of batch prompts count only against batch requests. Tenants
// take turns by tokens (worker/schedule.h): before a request come its own tenant's prompts, and as much of each other
// tenant.
//
// With an objective for the time per token, workers cut prompts into chunks that leave the sequences beside that time
// (worker/schedule.h). Then a prompt that is computed where sequences decode takes longer.
#pragma once

#include <cstdint>
#include <vector>

#include "common/step_cost.h"

namespace baton::router {

struct WorkerView {
  bool avoided = false;               // the request must not go there
  uint64_t waiting_tokens = 0;        // reported, and sent but not yet in a report
  uint64_t waiting_batch_tokens = 0;  // those of waiting_tokens with priority batch
  uint32_t waiting_requests = 0;
  uint64_t tenant_tokens = 0;                // of waiting interactive prompts, those of the request's tenant
  std::vector<uint64_t> other_tenants = {};  // the same of each other tenant that is known; empty: one tenant waits
  double prefill_tokens_per_second = 0;      // 0: not measured yet
  double step_seconds = 0;                   // 0: not measured yet
  double sequence_seconds = 0;               // mean time that a sequence decodes; 0: not measured yet
  uint32_t decoding_sequences = 0;           // that run now
  uint32_t running_sequences = 0;            // these, and sequences that will run there when they have their KV
  uint32_t objectives = 0;                   // of running_sequences, those with an objective for the time per token
  double tpot_slo = 0;                       // the least of these objectives; 0: none
  uint32_t max_sequences = 0;
  uint64_t pages_total = 0;
  uint64_t pages_free = 0;  // cached pages included
  uint32_t page_tokens = 1;
  uint32_t kv_token_bytes = 0;
  uint32_t max_context_tokens = 0;
  uint32_t cached_tokens = 0;   // of the prompt in question, as far as is known
  uint64_t running_tokens = 0;  // context of the running sequences
  StepCost cost = {};
};

// The figures of recent handoffs between two workers.
struct PathView {
  double bytes_per_second = 0;  // 0: not measured yet
};

// A ready pair. When the decode worker prefills locally both views are of the same worker.
struct PairView {
  uint64_t pair = 0;
  bool local = false;
  WorkerView prefill;
  WorkerView decode;
  PathView path;
};

// Times in seconds.
struct PlacementNeed {
  uint32_t prompt_tokens = 0;  // to be prefilled: prior output included
  uint32_t total_tokens = 0;   // prompt and max_tokens
  bool is_batch = false;       // as served: a late request may be served as a batch request
  double waited = 0;           // since the request was received
  double time_left = 0;        // until the deadline; 0: no limit
  double ttft_slo = 0;         // since the request was received; 0: none, or the first token is out
  double tpot_slo = 0;         // 0: none
};

// The speed of a worker or a path that has measured nothing is taken for the best that others have measured. Such a
// worker soon gets work, which it can measure.
struct AssumedSpeed {
  double prefill_tokens_per_second = 0;
  bool is_measured = false;  // prefill_tokens_per_second: by some worker
  double path_bytes_per_second = 0;
  double step_seconds = 0;
};

// Returns the tokens of the prompt that the worker lacks, and the last token, which is always computed.
uint32_t TokensToCompute(const WorkerView& prefill, const PlacementNeed& need);

// Returns the share of its time that a worker computes prompts beside the sequences that decode there.
double PromptShare(const WorkerView& worker);

// A grant of the decode worker covers the prompt and one page to grow into.
uint32_t PagesToStart(const WorkerView& decode, uint32_t prompt_tokens);

// The tokens of prompts that wait at a worker, as time passes: those of interactive requests are computed first.
struct WaitingPrompts {
  double interactive = 0;
  double batch = 0;

  void Compute(double tokens) {
    const double of_interactive = interactive < tokens ? interactive : tokens;
    interactive -= of_interactive;
    batch -= batch < tokens - of_interactive ? batch : tokens - of_interactive;
  }
};

// Odds are in [0, 1], times in seconds.
struct Forecast {
  double first_token = 0;     // time until the prefill worker samples the first token
  double alone = 0;           // the part of first_token if nothing waited
  double guessed = 0;         // the part of first_token that follows from no measurement
  double decoding = 0;        // time until the sequence decodes
  double delay = 0;           // of all sequences that decode where the prompt is computed, together
  double misses_ttft = 0;     // odds that the request misses its objective for the first token
  double misses_tpot = 0;     // the same for the time per token
  double others_missing = 0;  // by how much the request raises the number of sequences that miss their objectives
};
// The part of a forecast that the worker decides where the prompt is computed. All pairs of a prefill worker share it.
struct PromptForecast {
  double done = 0;     // time until the prompt is computed and, if another worker decodes, handed over
  double alone = 0;    // the part of `done` if nothing waited
  double compute = 0;  // the part of `done` that computes this prompt, beside the sequences that decode there
  double guessed = 0;  // the part of `done` that follows from no measurement
  double delay = 0;    // as in Forecast
  uint32_t kv_token_bytes = 0;
};
// The part that the decode worker decides. All pairs of a decode worker share it.
struct DecodeForecast {
  double room = 0;         // time until the decode worker has a batch slot and pages
  double guessed = 0;      // the part of `room` that follows from no measurement
  double step = 0;         // time until the sequence decodes, once its KV is there
  double misses_tpot = 0;  // these as in Forecast
  double others_missing = 0;
  uint32_t tokens_lacked = 0;  // of the prompt: their KV must travel
};
PromptForecast ForecastOfPrompt(const WorkerView& prefill, bool local, const PlacementNeed& need,
                                const AssumedSpeed& assumed);
DecodeForecast ForecastOfDecoding(const WorkerView& decode, const PlacementNeed& need, const AssumedSpeed& assumed);
// Joins the two parts. `path` is null if the prompt is computed where the sequence decodes.
Forecast ForecastOf(const PromptForecast& prompt, const DecodeForecast& decoding, const PathView* path,
                    const PlacementNeed& need, const AssumedSpeed& assumed);
Forecast ForecastOf(const PairView& pair, const PlacementNeed& need, const AssumedSpeed& assumed);

// Seconds, with everything that a request does to others: the least cost is the best place.
double CostOf(const Forecast& forecast);
// The cost if another worker has computed the prompt and all KV is there.
double CostOf(const DecodeForecast& decoding);
inline double CostOf(const PairView& pair, const PlacementNeed& need, const AssumedSpeed& assumed) {
  return CostOf(ForecastOf(pair, need, assumed));
}
// Returns the least cost of the prompt. But for rounding, no pair costs less than this and CostOf its decode worker.
double LeastCostOf(const PromptForecast& prompt, const PlacementNeed& need);

// Whether a request is worth serving now on a pair.
enum class Verdict : uint8_t {
  kServe,
  kLate,      // the first token would probably miss its objective, or the deadline: others wait before
  kNoRoom,    // the sequences at the decode worker leave no time for one more
  kHopeless,  // no idle pair of such workers would keep the objective for the first token
};
struct Judgement {
  Verdict verdict = Verdict::kServe;
  double retry_after = 0;  // estimate of the seconds after which the same request would be served
};
Judgement Judge(const PairView& pair, const PlacementNeed& need, const AssumedSpeed& assumed);

// Estimate of the seconds until the pair has finished one of the requests that wait or run there.
double SecondsUntilRoom(const PairView& pair, const AssumedSpeed& assumed);

}  // namespace baton::router
