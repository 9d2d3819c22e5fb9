// The DecodeEngine runs continuous batching: every step computes one token for each running sequence, sequences join
// and leave between steps. With role `both` it also computes prompts itself, in chunks under what is left of the token
// budget.
//
// Life of an attempt here (state in brackets):
//   [awaiting]  its prompt is computed elsewhere; the HandoffReceiver holds its pages until they are complete
//   [waiting]   its prompt is to be computed here: in a queue by age; holds nothing
//   [running]   in the batch, or growing into it chunk by chunk
// When pages run out the youngest running sequence is preempted: its stream ends with PREEMPTED and its pages are free
// at once. The oldest never is.
//
// Lives on one EngineThread: all methods run there, but for construction and OnPagesFree.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "baton/v1/worker.pb.h"
#include "engine/kv/page_pool.h"
#include "engine/model/model.h"
#include "kvtransfer/endpoints.h"
#include "worker/engine_thread.h"
#include "worker/event_sink.h"
#include "worker/job_table.h"
#include "worker/load.h"
#include "worker/metrics.h"
#include "worker/schedule.h"
#include "worker/sequence.h"
#include "worker/step.h"

namespace baton {

using DecodeSink = EventSink<v1::DecodeEvent>;

class DecodeEngine final : public Engine {
 public:
  struct Parts {  // all outlive the engine
    Model* model = nullptr;
    PagePool* pool = nullptr;
    HandoffReceiver* receiver = nullptr;  // null: serves alone
    EngineThread* thread = nullptr;       // this engine's
    WorkerMetrics* metrics = nullptr;
    WorkerLoadBoard* load = nullptr;
  };
  DecodeEngine(const Parts& parts, const ScheduleLimits& limits);

  // The attempt is open at the receiver: pages will come.
  void Await(Attempt attempt, std::shared_ptr<DecodeSink> sink);
  // The prompt is computed here.
  void SubmitLocal(Attempt attempt, std::shared_ptr<DecodeSink> sink);
  // From the receiver.
  void OnReceived(ReceivedSequence received);
  void OnHandoffFailed(const AttemptKey& key, const absl::Status& why);
  // The caller is gone or the attempt is no longer wanted. Unknown keys are ignored.
  void Cancel(const AttemptKey& key);
  // From now on the receiver refuses reservations.
  void StartDraining() { draining_ = true; }
  // Ends everything with DRAINING.
  void FailAll();

  // Pages became free, on whatever thread: wakes the engine if it waits for some.
  void OnPagesFree();

  bool Tick() override;

 private:
  enum class State { kAwaiting, kWaiting, kRunning };
  struct Job {
    Job(Attempt attempt, PagePool& pool, State initial, std::shared_ptr<DecodeSink> events)
        : sequence(std::move(attempt), pool),
          sink(std::move(events)),
          state(initial),
          local(initial == State::kWaiting) {}
    Sequence sequence;
    const std::shared_ptr<DecodeSink> sink;
    State state;
    const bool local;         // prompt computed here
    absl::Time queued_since;  // ready to run
    absl::Time started;       // first step
    bool first_token_out = false;
  };

  void Add(Attempt attempt, State state, std::shared_ptr<DecodeSink> sink);
  bool HasBatchSlot() const;
  bool EnsurePages(Sequence& sequence, int tokens);
  void AdmitLocal();
  bool IsComputedByAnother(Job& job);
  void GrowAll();
  std::vector<Share> Plan() const;
  void RunStep(const std::vector<Share>& plan);
  void OnSampled(const AttemptKey& key, const SampledToken& sampled);
  void Fail(const AttemptKey& key, v1::AttemptFailure cause, const absl::Status& why);
  void End(const AttemptKey& key, const std::string& outcome);
  void PublishLoad();

  const Parts parts_;
  const ScheduleLimits limits_;
  StepRunner runner_;
  JobTable<Job> jobs_;
  std::atomic<bool> wants_pages_{false};  // an allocation failed: tell when pages are free
  MeanSpeed prefill_speed_;
  bool draining_ = false;
  int local_sequences_ = 0;  // running ones that did not come through the receiver
};

}  // namespace baton
