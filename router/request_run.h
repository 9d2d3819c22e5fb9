// SPDX-License-Identifier: Apache-2.0
// A RequestRun runs one request: carries out the actions of its RequestMachine (calls to workers, timers, placement)
// and feeds the machine with events. Clients' requests and probes of pairs run through the same code.
//
// Every event goes through the run's strand: one task at a time uses the machine and all members below "strand". No
// lock is held while gRPC is called. The run keeps itself alive through its calls until the last call has ended.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "baton/v1/inference.pb.h"
#include "baton/v1/worker.pb.h"
#include "common/ids.h"
#include "common/steady_time.h"
#include "engine/kv/page_hash.h"
#include "router/placer.h"
#include "router/request_machine.h"
#include "router/request_spec.h"
#include "router/strand.h"
#include "router/timer.h"
#include "router/trace/request_trace.h"
#include "router/trace/tracer.h"
#include "text/assets/model_assets.h"

namespace baton::router {

class RouterMetrics;

// Receives a request's answer: chunks in order, then exactly one OnFinish or OnFail. The request's strand calls the
// sink, which must not block.
class ResponseSink {
 public:
  virtual ~ResponseSink() = default;
  virtual void OnChunk(v1::Chunk chunk) = 0;
  virtual void OnFinish(v1::Finish finish) = 0;
  virtual void OnFail(const absl::Status& status, absl::Duration retry_after) = 0;
};

class RequestRun : public std::enable_shared_from_this<RequestRun> {
 public:
  struct Options {
    RequestId id = RequestId::Random();
    std::string label;  // the client's own name for the request, for logs
    RequestSpec spec;
    std::shared_ptr<const ModelAssets> assets;
    uint32_t page_tokens = 0;  // 0: placement does not consider pages
    RetryPolicy retry;
    SteadyTime received;
    absl::Time arrival;      // the date of `received`
    absl::Duration timeout;  // from `received`
    std::shared_ptr<Placer> placer;
    std::shared_ptr<ResponseSink> sink;   // released after its last call
    bool is_probe = false;                // router and workers count no metrics
    RouterMetrics* metrics = nullptr;     // outlives the run; null: nothing is counted
    std::unique_ptr<RequestTrace> trace;  // null: nothing is traced
    Tracer* tracer = nullptr;             // gets the trace at the end; outlives the run
  };

  static std::shared_ptr<RequestRun> Start(Options options);
  ~RequestRun();
  // Fails the request with `why`, or DEADLINE_EXCEEDED after the deadline, and cancels both workers' calls.
  // Thread-safe.
  void Cancel(const absl::Status& why);

 private:
  struct Calls;

  PlacementQuery MakeQuery();
  explicit RequestRun(Options options);
  // Runs `event` on the strand, then the machine's actions.
  template <typename Event>
  void Handle(Event event);
  void RunActions();

  void Do(action::Place& place);
  void Do(action::OpenDecode& open);
  void Do(action::SubmitPrefill& submit);
  void Do(action::PlaceMigration& place);
  void Do(action::Migrate& migrate);
  void Do(action::CancelDecode& cancel);
  void Do(action::CancelPrefill& cancel);
  void Do(action::WakeAfter& wake);
  void Do(action::AttemptEnded& ended);
  void Do(action::HandedOver& handed_over);
  void Do(action::Resumed& resumed);
  void Do(action::Disagreement& disagreement);
  void Do(action::Send& send);
  void Do(action::Finish& finish);
  void Do(action::Fail& fail);

  template <typename Call, typename Request, typename Method>
  std::shared_ptr<Call> StartPrefill(uint32_t attempt, WorkerConnection& worker, Request request, Method method);
  absl::Time DueTime() const;
  // As served.
  std::string_view priority() const { return is_batch_ ? "batch" : "interactive"; }
  v1::AttemptHeader MakeHeader(uint32_t attempt, const Placement& placement) const;
  std::vector<PageKey> PagesOfContext();
  absl::Duration TimeLeft() const;
  void ObserveTokens(const v1::Chunk& chunk);
  void NoteObjectives(bool ttft_met, bool tpot_met);
  void NoteAnswer(const v1::Finish& finish);
  // `error` is empty for an answer.
  void End(std::string_view outcome, std::string_view error);

  Options options_;  // constant but for the sink, which the strand releases
  Strand strand_;

  // Strand:
  RequestMachine machine_;
  std::map<uint32_t, std::unique_ptr<Calls>> calls_;  // by number of an open attempt
  std::string numerics_id_;                           // of the first attempt, for all later attempts
  bool is_batch_ = false;                             // served with priority batch; once so, always so
  std::vector<PageHash> page_hashes_;                 // of the prompt and the output so far
  Timer wake_timer_;
  Timer deadline_timer_;
  std::optional<SteadyTime> attempt_opened_;  // the latest
  std::optional<SteadyTime> last_token_;
  std::optional<WhenLate> late_;  // what was done with a request that was found late
};

}  // namespace baton::router
