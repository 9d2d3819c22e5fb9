// The DecodeEngine runs continuous batching: every step computes one token for each running sequence, sequences join
// and leave between steps. With role `both` it also computes prompts itself, in chunks under what is left of the token
// budget.
//
// Life of an attempt here (state in brackets):
//   [awaiting]  its prompt is computed elsewhere; the HandoffReceiver holds its pages until they are complete
//   [waiting]   its prompt is to be computed here: in a queue by age; holds nothing
//   [running]   in the batch, or growing into it chunk by chunk
//   [at rest]   handed over to another decode worker but for the last word of it
//   [releasing] ended, but the transport may still read its pages
// When pages run out the youngest running sequence is preempted: its stream ends with PREEMPTED and its pages are free.
// The oldest never is.
//
// When the worker drains it tells the routers of its running sequences, which may have them migrated (migration.cc): a
// sequence goes on here while the pages that are full leave; once they have landed it comes to rest, and what was
// sampled meanwhile follows with Commit.
//
// Lives on one EngineThread: all methods run there, but for construction and OnPagesFree.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
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

using DecodeSink = EventSink<v1::DecodeEvent>;
using MigrationSink = EventSink<v1::PrefillEvent>;

// A running sequence is to go on as another attempt of its request at another decode worker.
struct MigrationOrder {
  AttemptKey from;  // runs here
  AttemptKey to;
  uint32_t prior_output_tokens = 0;  // of `to`
  HandoffTarget target;
};

class DecodeEngine final : public Engine {
 public:
  struct Parts {  // all outlive the engine
    Model* model = nullptr;
    PagePool* pool = nullptr;
    HandoffReceiver* receiver = nullptr;  // null: serves alone
    HandoffSender* sender = nullptr;      // null: migrates nothing
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
  void OnHandoffFailed(const AttemptKey& key, const Outcome& why);
  // The caller is gone or the attempt is no longer wanted. Unknown keys are ignored.
  void Cancel(const AttemptKey& key);
  // Ends as the header of Migrate in worker.proto says.
  void Migrate(const MigrationOrder& order, std::shared_ptr<MigrationSink> sink);
  // The sequence stays here. Unknown ones are ignored.
  void CancelMigration(const MigrationOrder& order);
  // From now on the receiver refuses reservations.
  void StartDraining() { draining_ = true; }
  // Ends everything with DRAINING.
  void FailAll();

  // Pages became free, on whatever thread: wakes the engine if it waits for some.
  void OnPagesFree();

  bool Tick() override;

 private:
  enum class State { kAwaiting, kWaiting, kRunning, kAtRest, kReleasing };
  struct Departure {  // of a sequence that is being migrated
    MigrationOrder order;
    std::shared_ptr<MigrationSink> sink;
    int pages = 0;  // the first so many go
  };
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
    bool told_draining = false;
    bool unwanted = false;  // cancelled while at rest
    std::optional<Departure> departure;
    int reading = 0;  // handoffs that may still read its pages

    bool in_batch() const { return state == State::kRunning || state == State::kAtRest; }
  };

  absl::Status CheckReceived(const Job& job, const ReceivedSequence& received) const;
  void Add(Attempt attempt, State state, std::shared_ptr<DecodeSink> sink);
  // There is a batch slot, and no reservation that is to have it first.
  bool LocalMayStart() const;
  bool EnsurePages(Sequence& sequence, int tokens);
  void AdmitLocal();
  // Unless reservations wait, and none was granted since the last local prompt was admitted.
  bool IsLocalsTurn();
  void EndLocalsTurn();
  bool NeedsQuarantined(int tokens) const;
  // The next slot and pages that become free are for a local prompt.
  void SetLocalNext(bool next);
  void TellLocalSequences();
  bool IsComputedByAnother(Job& job);
  void GrowAll();
  std::vector<Share> Plan() const;
  void RunStep(const std::vector<Share>& plan);
  void OnSampled(const AttemptKey& key, const SampledToken& sampled);
  void Fail(const AttemptKey& key, const Outcome& why);
  void End(const AttemptKey& key, Cause cause);
  void PublishLoad();

  // migration.cc
  void AnnounceDraining();
  bool FillsAPage(const Job& job) const;
  Job* FindDeparting(const MigrationOrder& order);
  void OnDepartureGranted(const MigrationOrder& order);
  void OnDepartureFlushed(const MigrationOrder& order);
  void OnDepartureFailed(const MigrationOrder& order, const Outcome& why);
  void OnDeparted(const MigrationOrder& order, const HandoffStats& stats);
  void AbortDeparture(Job& job, const Outcome& why);
  void EndDeparture(Job& job, const Outcome& why);
  void OnNoLongerRead(const AttemptKey& key);

  const Parts parts_;
  const ScheduleLimits limits_;
  StepRunner runner_;
  JobTable<Job> jobs_;
  std::atomic<bool> wants_pages_{false};  // an allocation failed: tell when pages are free
  MeanSpeed prefill_speed_;
  bool draining_ = false;
  int local_sequences_ = 0;  // running ones that did not come through the receiver
  bool local_next_ = false;
  bool locals_turn_ = true;
  uint64_t grants_seen_ = 0;  // when the last local prompt was admitted
};

}  // namespace baton
