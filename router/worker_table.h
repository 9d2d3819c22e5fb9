// SPDX-License-Identifier: Apache-2.0
// Knows the workers, and decides what to do about them. No threads, clock or I/O: reports go in with the time, effects
// come out.
//
//   worker state   entered when
//   connecting     no report has come yet, or the stream of reports broke
//   starting, serving, switching, draining: as the worker reports. A worker that is no longer listed counts as draining
//   lost           a report is overdue by peer_timeout, or the worker reports another epoch
//
// When a worker is lost, its attempts are ended and its pairs forgotten. A worker that reports another epoch is a new
// worker. The table forgets a worker that has not been listed for kForgetDelay once the worker is lost or runs none of
// this router's requests. A pair is a prefill and a decode worker of one model, numerics id and set of assets; a decode
// worker of role both is a pair with itself. Only pairs that have passed a probe of the whole path serve requests
// (pair_set.h).
//
// Not thread-safe: WorkerRegistry guards it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "baton/v1/inference.pb.h"
#include "baton/v1/worker.pb.h"
#include "common/ids.h"
#include "common/steady_time.h"
#include "router/balance.h"
#include "router/known_pages.h"
#include "router/pair_set.h"
#include "router/placement.h"
#include "router/placer.h"
#include "router/request_spec.h"
#include "text/assets/model_assets.h"

namespace baton::router {

// A model as requests need it.
struct ServedModel {
  std::string name;
  std::shared_ptr<const ModelAssets> assets;
  ModelLimits limits;
};

// Whether workers of the role do this work.
inline bool ComputesPrompts(v1::WorkerRole role) {
  return role == v1::WORKER_ROLE_PREFILL || role == v1::WORKER_ROLE_BOTH;
}
inline bool Decodes(v1::WorkerRole role) { return role == v1::WORKER_ROLE_DECODE || role == v1::WORKER_ROLE_BOTH; }

class WorkerTable {
 public:
  struct Options {
    absl::Duration peer_timeout = absl::Seconds(3);
    uint32_t max_prompt_tokens = 0;
    PlacementRules placement = {};
    // Whether this router has no request at the worker.
    std::function<bool(const WorkerRef&)> is_idle = [](const WorkerRef&) { return true; };
  };

  struct WatchPages {  // -> OnPages..., OnPagesEnded
    size_t worker;
    uint64_t watch;
  };
  struct FetchAssets {  // -> OnAssets
    size_t worker;
    std::string fingerprint;
  };
  struct Event {  // for the log
    std::string name;
    std::string subject;
    std::string detail;
    bool is_bad = false;
  };
  // A worker that is not listed any more is kept at least this long: a request that was placed may not have called yet.
  static constexpr absl::Duration kForgetDelay = absl::Seconds(5);
  static constexpr size_t kMaxPastModels = 64;
  static constexpr size_t kMaxOrders = 64;
  static constexpr absl::Duration kOrderCallTimeout = absl::Seconds(3);
  static constexpr absl::Duration kOrderDelay =
      absl::Seconds(2);  // from the answer to the report that shows the change

  // An index names a listed address, and is never used again.
  struct Effects {
    std::vector<std::pair<size_t, std::string>> joined;  // index and address
    std::vector<size_t> forgotten;                       // end everything that concerns them
    std::vector<size_t> connect;                         // -> OnStatus..., OnStreamEnded
    std::vector<WatchPages> watch_pages;
    std::vector<FetchAssets> fetch;
    std::vector<Placement> probe;  // -> OnProbed
    std::vector<WorkerRef> lost;   // end the calls to them
    std::vector<Event> events;
  };

  explicit WorkerTable(Options options);
  WorkerTable(WorkerTable&&) = default;

  // Sets the addresses of all workers. A worker whose address is missing gets no new request.
  void SetMembers(SteadyTime now, std::span<const std::string> addresses);

  // `connection` is how calls reach this start of the worker; asked for once per epoch.
  using MakeConnection = std::function<std::shared_ptr<WorkerConnection>()>;
  void OnStatus(SteadyTime now, size_t worker, const v1::WorkerStatus& status, const MakeConnection& connection);
  void OnStreamEnded(SteadyTime now, size_t worker, const absl::Status& status);
  void OnPages(const WatchPages& watch, const v1::PageNews& news);
  void OnPagesEnded(SteadyTime now, const WatchPages& watch, const absl::Status& status);
  void OnAssets(SteadyTime now, const std::string& fingerprint,
                absl::StatusOr<std::shared_ptr<const ModelAssets>> assets);
  void OnProbed(SteadyTime now, uint64_t pair, const absl::Status& status);
  void OnPairBroken(SteadyTime now, uint64_t pair, const std::string& why);
  void OnHandedOver(SteadyTime now, uint64_t pair, const v1::HandedOver& measured);

  // Returns what is due. Call it after each of the above, and every now and then.
  Effects Advance(SteadyTime now);

  PlacementResult Place(SteadyTime now, const PlacementQuery& query);
  // Returns whether the workers of the request's pin, if any, can ever serve the request. INVALID_ARGUMENT names the
  // field; UNAVAILABLE: a worker does not know its model yet.
  absl::Status CheckPin(const RequestSpec& spec) const;
  // An empty name stands for the only model. NOT_FOUND names the known models; UNAVAILABLE when none is known yet or no
  // worker of the model is live. A model whose workers all leave is found: its requests may wait for successors.
  absl::StatusOr<ServedModel> FindModel(const std::string& name);

  static const char* RoleName(v1::WorkerRole role);  // empty: unspecified
  // A worker whose role is to change.
  struct RoleOrder {
    uint64_t number = 0;
    size_t worker = 0;
    v1::WorkerRole from = v1::WORKER_ROLE_UNSPECIFIED;
    v1::WorkerRole to = v1::WORKER_ROLE_UNSPECIFIED;
  };
  // Returns the order for worker `id` to take `role`. INVALID_ARGUMENT: no role; NOT_FOUND names the workers;
  // UNAVAILABLE: the worker does not serve. FAILED_PRECONDITION, unless `force`: no other serving worker of the model
  // does what this worker would cease to do. RESOURCE_EXHAUSTED: kMaxOrders are open. The order is open until the
  // worker reports the change, until the worker refuses, or until kOrderDelay after the call: the worker counts as gone
  // from its role meanwhile.
  absl::StatusOr<RoleOrder> OrderRole(SteadyTime now, const std::string& id, const std::string& role, bool force);
  // The call with the order has ended.
  void OnOrderEnded(SteadyTime now, const RoleOrder& order, const absl::Status& status);
  // Returns the load of each model's workers by role. `settle`: for how long a change of a role counts as recent. An
  // open order unsettles its model, too.
  std::map<std::string, BalanceFacts> balance_facts(absl::Duration settle) const;

  // Every worker heard of, lost ones too.
  std::vector<WorkerRef> refs() const;
  bool ready() const { return ready_pairs() > 0; }
  size_t ready_pairs() const;
  std::map<std::string, int> workers_by_state() const;  // every state, also with none in it
  void Describe(SteadyTime now, v1::GetStatusResponse& response) const;
  void Describe(v1::ListModelsResponse& response) const;

 private:
  // Sent there by this router and perhaps not yet in the worker's own report.
  struct SentWork {
    SteadyTime at;
    uint64_t request = 0;  // low bits of the id
    uint32_t tokens = 0;   // to compute
    uint32_t pages = 0;
    uint32_t context = 0;  // tokens of a sequence that will decode there
    std::string tenant = {};
    bool is_batch = false;
    double tpot_slo = 0;  // of that sequence; 0: none
  };

  // A worker for placement, but for what the time and the query decide. UpdateLoad keeps it up to date.
  struct Load {
    WorkerView view;
    WaitingPrompts waiting;  // at waiting_at
    SteadyTime waiting_at;
    double tokens_per_second = 0;                                // of waiting prompts, while they are computed
    std::vector<std::pair<std::string, uint64_t>> tenants = {};  // waiting interactive tokens, each tenant once

    WaitingPrompts WaitingAt(SteadyTime now) const {
      WaitingPrompts later = waiting;
      if (now > waiting_at && (waiting.interactive > 0 || waiting.batch > 0)) {
        later.Compute(tokens_per_second * absl::ToDoubleSeconds(now - waiting_at));
      }
      return later;
    }
    // The worker computes as long as prompts wait.
    void ComputeUntil(SteadyTime time) {
      waiting = WaitingAt(time);
      waiting_at = std::max(waiting_at, time);
    }
  };

  struct Worker {
    size_t index = 0;
    std::string address;
    bool listed = true;
    SteadyTime unlisted_at = SteadyTime::InfinitePast();
    std::string id;  // the address until it has told its id
    bool connecting = false;
    bool stream_open = false;  // a report has come on the present stream
    bool lost = false;
    int failed_connects = 0;
    SteadyTime next_connect = SteadyTime::InfinitePast();
    SteadyTime last_heard = SteadyTime::InfinitePast();
    std::string detail;
    std::optional<WorkerRef> ref;  // since the first report
    v1::WorkerStatus status;
    SteadyTime load_as_of = SteadyTime::InfinitePast();  // of the figures in status.load()
    std::vector<SentWork> sent;                          // in order of time
    Load known;                                          // from `status` and `sent`
    KnownPages::Slot pages = 0;
    bool watching_pages = false;
    uint64_t pages_watch = 0;  // the latest; pages of an earlier watch are dropped
    std::string pages_error;   // why the previous watch ended
    SteadyTime next_pages_watch = SteadyTime::InfinitePast();

    bool live() const { return ref && !lost; }
    // Takes nothing new: for good, or until the worker has taken another role.
    bool leaving() const {
      return live() &&
             (!listed || status.state() == v1::WORKER_STATE_DRAINING || status.state() == v1::WORKER_STATE_SWITCHING);
    }
    bool serving() const { return live() && listed && stream_open && status.state() == v1::WORKER_STATE_SERVING; }
  };

  using Pair = PairSet::Pair;

  // The workers that serve one model, set of assets and numerics id. Kept until a worker or a pair changes: the views
  // are made anew for each query.
  struct Group {
    std::string model;
    std::string assets_fingerprint;
    std::string numerics_id;  // empty: any
    SteadyTime made_at;
    std::vector<const Worker*> workers = {};
    Candidates candidates = {};  // in the order of `workers`

    bool Serves(const PlacementQuery& query) const {
      return model == query.model && assets_fingerprint == query.assets_fingerprint && numerics_id == query.numerics_id;
    }
  };
  // An order that the worker's reports do not show yet.
  struct OpenOrder {
    RoleOrder order;
    SteadyTime until;  // then no change is to be expected any more
  };
  struct PairStatus {
    std::string state;
    std::string detail;
  };

  struct Assets {
    std::shared_ptr<const ModelAssets> loaded;
    bool fetching = false;
    std::string error;
    SteadyTime next_fetch = SteadyTime::InfinitePast();
  };

  // A request that found no room.
  struct Waiter {
    std::string model;
    RequestId request;
    absl::Time due;
    SteadyTime until;  // forgotten then, unless the request asks again
  };

  static const char* StateName(const Worker& worker);
  static void DescribeRole(const v1::RoleFacts& facts, v1::WorkerInfo& info);

  Worker* Find(size_t index);  // null: forgotten
  void ForgetUnlisted(SteadyTime now);
  void ForgetOrders(SteadyTime now);
  void ForgetOrdersShownBy(const Worker& worker, bool is_new);
  void NotePastModel(SteadyTime now, const std::string& model);
  // Workers of one id cannot be told apart in logs, metrics and answers.
  void ReportSameId(const Worker& worker);
  void Lose(Worker& worker, const std::string& why);
  void CompletePairs();
  std::string WhyNoPair(size_t prefill, size_t decode) const;
  std::string PairName(const Pair& pair) const;
  bool Usable(const Pair& pair) const;
  bool Matches(const Worker& worker, const PlacementQuery& query) const;
  static void UpdateLoad(Worker& worker);
  static void Send(Worker& worker, SentWork sent);
  static void View(SteadyTime now, const Worker& worker, const PlacementQuery& query, uint32_t cached_pages,
                   WorkerView& view);
  static void SplitByTenant(const Load& load, const std::string& tenant, WorkerView& view);
  Group MakeGroup(SteadyTime now, const PlacementQuery& query) const;
  PairStatus StatusOf(const Pair& pair) const;
  // Forgets what was found before the last change of a worker or a pair.
  void ForgetFound();
  absl::StatusOr<ServedModel> SearchModel(const std::string& name) const;
  // The group lasts until the next call.
  const Group& FindCandidates(SteadyTime now, const PlacementQuery& query);
  std::string Explain(const Candidates& candidates, const PlacementNeed& need) const;
  static PlacementResult NotNow(const Judgement& judgement, const PlacementQuery& query, const PlacementNeed& need);
  PlacementResult PlaceOn(SteadyTime now, size_t pair, const Candidates& candidates, const PlacementQuery& query,
                          bool is_batch);
  PlacementResult PlaceUnlessLate(SteadyTime now, size_t pair, const Candidates& candidates,
                                  const PlacementQuery& query, PlacementNeed need);
  PlacementResult PlaceMigration(SteadyTime now, const Group& group, const PlacementQuery& query);
  PlacementResult PlacePinned(SteadyTime now, const Group& group, const PlacementQuery& query);
  const Worker* FindById(const std::string& id) const;
  std::string NamesOfWorkers(const std::string& model, bool prefills) const;
  absl::StatusOr<const Worker*> FindPinned(const std::string& field, const std::string& id, const RequestSpec& spec,
                                           bool prefills) const;
  void WantFasterPair(SteadyTime now, const Group& group, const PlacementNeed& need, std::optional<size_t> chosen);
  PlacementResult WhyNotPlaced(const Candidates& candidates, const PlacementQuery& query) const;
  bool OlderWaits(SteadyTime now, const PlacementQuery& query) const;
  void NoteWaiter(SteadyTime now, const PlacementQuery& query);
  Placement MakePlacement(size_t prefill, size_t decode, uint64_t pair) const;
  const ModelAssets* LoadedAssets(const Worker& worker) const;
  std::string WhyNotServed(const std::string& model) const;
  std::string WhyNoTokenizer(const std::string& model) const;
  std::shared_ptr<const ModelAssets> AssetsOf(const std::string& model) const;
  ModelLimits LimitsOf(const ServedModel& model) const;
  void AdvanceWorkers(SteadyTime now);
  void AdvanceAssets(SteadyTime now);
  void AdvancePairs(SteadyTime now);
  void Report(std::string name, std::string subject, std::string detail, bool is_bad);

  const Options options_;
  std::map<size_t, Worker> workers_;  // by index
  size_t next_index_ = 0;
  uint64_t next_order_ = 0;
  std::vector<OpenOrder> orders_;
  std::map<std::string, SteadyTime> past_models_;  // of forgotten workers, by name: when the last one was forgotten
  PairSet pairs_;
  KnownPages pages_;
  std::vector<Group> groups_;
  std::map<std::string, ServedModel> found_models_;  // by the name that was asked for
  uint64_t version_ = 0;          // changes whenever a worker begins or ceases to serve, or serves something else
  uint64_t found_version_ = 0;    // the sum of both versions when the groups and models were found
  bool members_changed_ = false;  // since the pairs were completed
  std::map<std::string, Assets> assets_;  // by fingerprint; those of live workers
  uint64_t turn_ = 0;
  std::optional<Waiter> waiter_;  // of the requests that lately found no room, the one that is due first
  SteadyTime next_want_ = SteadyTime::InfinitePast();
  Effects effects_;
};

}  // namespace baton::router
