// The PrefillEngine computes prompts and hands their KV over to decode workers.
//
// Life of an attempt here (state in brackets):
//   [waiting]     in a queue by age; holds nothing
//   [reserving]   its own pages for the whole prompt are secured; Reserve was sent
//   [queued]      the decode worker has no room yet: its own pages are given back meanwhile
//   [granted]     there is room; its own pages must be secured again
//   [computing]   chunks of it run; pages leave layer by layer as they are complete
//   [committing]  the first token is out; flush and Commit are under way
//   [releasing]   ended, but the transport may still read its pages
// Every attempt ends with one terminal event to its sink, or with Cancel, and with its pages given back.
//
// Lives on one EngineThread: construction aside, all methods run there.
#pragma once

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "baton/v1/worker.pb.h"
#include "engine/kv/page_pool.h"
#include "engine/model/model.h"
#include "kvtransfer/endpoints/endpoints.h"
#include "worker/engine_thread.h"
#include "worker/event_sink.h"
#include "worker/job_table.h"
#include "worker/load.h"
#include "worker/metrics.h"
#include "worker/schedule.h"
#include "worker/sequence.h"
#include "worker/step.h"

namespace baton {

using PrefillSink = EventSink<v1::PrefillEvent>;

class PrefillEngine final : public Engine {
 public:
  struct Parts {  // all outlive the engine
    Model* model = nullptr;
    PagePool* pool = nullptr;
    HandoffSender* sender = nullptr;
    EngineThread* thread = nullptr;  // this engine's: callbacks of the sender come back through it
    WorkerMetrics* metrics = nullptr;
    WorkerLoadBoard* load = nullptr;
  };
  PrefillEngine(const Parts& parts, const ScheduleLimits& limits);

  void Submit(Attempt attempt, const HandoffTarget& target, std::shared_ptr<PrefillSink> sink);
  // The caller is gone or the attempt is no longer wanted. Unknown keys are ignored.
  void Cancel(const AttemptKey& key);
  // Ends everything with DRAINING.
  void FailAll();

  bool Tick() override;

 private:
  enum class State { kWaiting, kReserving, kQueued, kGranted, kComputing, kCommitting, kReleasing };
  struct Job {
    Job(Attempt attempt, PagePool& pool, HandoffTarget to, std::shared_ptr<PrefillSink> events)
        : sequence(std::move(attempt), pool), target(std::move(to)), sink(std::move(events)) {}
    Sequence sequence;
    const HandoffTarget target;
    const std::shared_ptr<PrefillSink> sink;
    State state = State::kWaiting;
    int expected_cached = 0;  // tokens of it that were here when it came
    int pages_put = 0;        // the first so many pages have left, all layers of them
    absl::Time submitted;
    absl::Time started;           // first chunk
    absl::Duration prefill_time;  // first chunk to first token
  };

  bool SecurePages(Job& job);
  void SecurePagesForAll();
  bool IsComputedByAnother(Job& job);
  void Reserve(Job& job);
  std::vector<Share> Plan() const;
  void RunStep(const std::vector<Share>& plan);
  int PagesComplete(const StepEntry& entry) const;
  void OnFirstToken(Job& job, const SampledToken& sampled);
  void OnQueued(const AttemptKey& key);
  void OnGranted(const AttemptKey& key);
  void OnHandoffFailed(const AttemptKey& key, const Outcome& why);
  void OnHandedOver(const AttemptKey& key, const HandoffStats& stats);
  void Fail(Job& job, const Outcome& why);
  void Release(Job& job, bool finished);
  void Forget(const AttemptKey& attempt_key);
  void PublishLoad();

  const Parts parts_;
  const ScheduleLimits limits_;
  StepRunner runner_;
  JobTable<Job> jobs_;
  MeanSpeed prefill_speed_;
};

}  // namespace baton
