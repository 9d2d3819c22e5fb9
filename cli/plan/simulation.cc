// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/simulation.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "cli/plan/event_queue.h"

namespace baton::plan {
namespace {

// As in router/request_attempts.cc.
constexpr double kRoomPollSeconds = 0.05;

enum class EventKind : uint8_t {
  kArrival,     // of `request` at the router
  kPlaceAgain,  // the router heard that the attempt was preempted
  kReport,      // of `worker` to the router
  kAwait,       // the decode worker `worker` hears of the attempt
  kSubmit,      // the worker that computes the prompt gets the attempt
  kReserve,     // the decode worker is asked for pages
  kNoRoom,      // the prefill worker hears that the pages come later
  kGranted,     // the prefill worker hears of its pages
  kStepDone,    // of `worker`
  kReceived,    // the sequence has arrived at the decode worker
  kReleased,    // `worker` no longer needs the attempt
};

struct Event {
  EventKind kind;
  uint32_t worker = 0;
  RequestIndex request = 0;
};

class Simulation {
 public:
  Simulation(const SimulationOptions& options, std::span<const SimulatedRequest> requests)
      : options_(options),
        requests_(requests),
        router_(options.workers,
                {.rules = options.placement, .path_bytes_per_second = options.network_bytes_per_second}),
        lives_(requests.size()) {
    result_.requests.resize(requests.size());
    for (const WorkerSpec& spec : options.workers) workers_.push_back({std::make_unique<SimulatedWorker>(spec.kind)});
  }

  SimulationResult Run() {
    if (!requests_.empty()) Add(requests_[0].arrival, {EventKind::kArrival});
    const auto count = static_cast<double>(workers_.size());
    for (uint32_t i = 0; i < workers_.size(); ++i) {
      // The workers' reports do not come all at one time.
      events_.Add(options_.report_interval_seconds * (i / count), {EventKind::kReport, i});
    }
    // Reports alone move nothing.
    while (under_way_ > 0 && result_.misses <= options_.most_misses) {
      const auto [now, event] = events_.Take();
      now_ = now;
      if (event.kind != EventKind::kReport) --under_way_;
      Handle(event);
    }
    result_.end = now_;
    for (const Worker& worker : workers_) {
      result_.steps += worker.worker->steps();
      result_.pages_held += worker.worker->ledger().pages_used();
      result_.slots_held += worker.worker->ledger().slots_used();
      result_.jobs_held += worker.worker->jobs();
    }
    return std::move(result_);
  }

 private:
  struct Worker {
    std::unique_ptr<SimulatedWorker> worker;
    double step_start = 0;
    double sends_until = 0;     // when all KV that was given to the network has left
    double receives_until = 0;  // when all KV on the way here has arrived
  };
  struct Life {
    PairChoice pair;
    double kv_landed = 0;  // when the KV computed so far has arrived
    bool is_batch = false;
  };

  void Add(double at, const Event& event) {
    events_.Add(at, event);
    ++under_way_;
  }
  void Send(EventKind kind, size_t worker, RequestIndex request, int messages = 1) {
    Add(now_ + messages * options_.message_seconds, {kind, static_cast<uint32_t>(worker), request});
  }

  // As in router/request_run.cc.
  double PatienceOf(RequestIndex request) const {
    if (lives_[request].is_batch) return 60;
    return options_.ttft_slo > 0 ? options_.ttft_slo : 1;
  }

  Attempt AttemptOf(RequestIndex request) const {
    const SimulatedRequest& asked = requests_[request];
    const RequestResult& so_far = result_.requests[request];
    return {.request = request,
            .age = {absl::UnixEpoch() + absl::Seconds(asked.arrival + PatienceOf(request)),
                    {{0, request}, static_cast<uint32_t>(so_far.attempts)}},
            .context_tokens = asked.prompt_tokens + so_far.tokens,
            .output_tokens = asked.output_tokens - so_far.tokens,
            .tpot_slo = absl::Seconds(options_.tpot_slo),
            .is_batch = lives_[request].is_batch};
  }

  void Handle(const Event& event) {
    switch (event.kind) {
      case EventKind::kArrival:
        if (event.request + 1 < requests_.size()) {
          Add(requests_[event.request + 1].arrival, {EventKind::kArrival, 0, event.request + 1});
        }
        return Place(event.request);
      case EventKind::kPlaceAgain: return Place(event.request);
      case EventKind::kReport: Report(event.worker); return events_.Add(now_ + options_.report_interval_seconds, event);
      default: return HandleAt(event);
    }
  }

  void Report(uint32_t index) {
    const Worker& worker = workers_[index];
    router_.OnReport(worker.worker->busy() ? worker.step_start : now_, index, worker.worker->Report());
  }

  // Handles what happens at a worker.
  void HandleAt(const Event& event) {
    SimulatedWorker& worker = *workers_[event.worker].worker;
    WorkerEffects effects;
    switch (event.kind) {
      case EventKind::kAwait: worker.Submit(AttemptOf(event.request), Route::kReceive); break;
      case EventKind::kSubmit:
        worker.Submit(AttemptOf(event.request),
                      lives_[event.request].pair.decode == event.worker ? Route::kLocal : Route::kHandOver);
        break;
      case EventKind::kReserve:
        if (!worker.Reserve(event.request, effects)) {
          Send(EventKind::kNoRoom, lives_[event.request].pair.prefill, event.request);
        }
        break;
      case EventKind::kNoRoom: worker.OnNoRoom(event.request, effects); break;
      case EventKind::kGranted: worker.OnGranted(event.request, effects); break;
      case EventKind::kStepDone: worker.FinishStep(effects); break;
      case EventKind::kReceived: worker.OnReceived(event.request); break;
      case EventKind::kReleased: worker.Release(event.request, effects); break;
      default: break;
    }
    CarryOut(event.worker, effects);
    if (!worker.busy()) StartStep(event.worker);
  }

  void StartStep(uint32_t index) {
    WorkerEffects effects;
    const std::optional<double> seconds = workers_[index].worker->StartStep(effects);
    workers_[index].step_start = now_;
    if (seconds) Add(now_ + *seconds, {EventKind::kStepDone, index});
    CarryOut(index, effects);
  }

  void Place(RequestIndex request) {
    const SimulatedRequest& asked = requests_[request];
    RequestResult& result = result_.requests[request];
    const router::PlacementNeed need{.prompt_tokens = static_cast<uint32_t>(asked.prompt_tokens + result.tokens),
                                     .total_tokens = static_cast<uint32_t>(asked.prompt_tokens + asked.output_tokens),
                                     .waited = now_ - asked.arrival,
                                     .ttft_slo = result.tokens == 0 ? options_.ttft_slo : 0,
                                     .tpot_slo = options_.tpot_slo};
    const PlaceAnswer answer = router_.Place(now_, need, /*has_begun=*/result.tokens > 0);
    const bool may_wait = answer.is_batch || options_.ttft_slo > 0;
    if (answer.kind == PlaceAnswer::Kind::kNoRoom && may_wait) {
      return Add(now_ + kRoomPollSeconds, {EventKind::kPlaceAgain, 0, request});
    }
    if (answer.kind != PlaceAnswer::Kind::kPlaced) {
      result.refused = true;
      return End(request);
    }
    const PairChoice* const pair = &answer.pair;
    ++result.attempts;
    lives_[request] = {.pair = *pair, .kv_landed = now_, .is_batch = answer.is_batch};
    if (pair->prefill == pair->decode) return Send(EventKind::kSubmit, pair->decode, request);
    // The prefill worker is asked once the decode worker has answered the router.
    Send(EventKind::kAwait, pair->decode, request);
    Send(EventKind::kSubmit, pair->prefill, request, /*messages=*/3);
  }

  void CarryOut(uint32_t index, const WorkerEffects& effects) {
    for (const RequestIndex request : effects.to_reserve) {
      Send(EventKind::kReserve, lives_[request].pair.decode, request);
    }
    for (const RequestIndex request : effects.granted) Send(EventKind::kGranted, lives_[request].pair.prefill, request);
    for (const RequestIndex request : effects.preempted) {
      ++result_.preemptions;
      Send(EventKind::kPlaceAgain, 0, request);
    }
    for (const ComputedKv& computed : effects.computed) SendKv(index, computed);
    for (const Sampled& sampled : effects.sampled) OnSampled(index, sampled);
  }

  // The KV of a step leaves while the step computes, and the last layer's at the end.
  void SendKv(uint32_t index, const ComputedKv& computed) {
    Life& life = lives_[computed.request];
    Worker& sender = workers_[index];
    Worker& receiver = workers_[life.pair.decode];
    const WorkerKind& kind = sender.worker->kind();
    const double bytes = static_cast<double>(computed.tokens) * kind.kv_token_bytes;
    const double begin = std::max({sender.step_start, sender.sends_until, receiver.receives_until});
    const double sent = begin + bytes / options_.network_bytes_per_second;
    sender.sends_until = receiver.receives_until = sent;
    life.kv_landed = std::max(sent, now_ + bytes / kind.layers / options_.network_bytes_per_second);
    result_.handoff_bytes += bytes;
  }

  void OnSampled(uint32_t index, const Sampled& sampled) {
    const Life& life = lives_[sampled.request];
    RequestResult& result = result_.requests[sampled.request];
    const double at_client = now_ + 2 * options_.message_seconds - requests_[sampled.request].arrival;
    if (result.tokens++ == 0) result.first_token = at_client;
    const bool hands_over = sampled.of_prompt && index != life.pair.decode;
    if (sampled.last) {
      result.last_token = at_client;
      result.complete = true;
      if (result.tokens > 1) workers_[index].worker->NoteSequence(result.last_token - result.first_token);
      if (hands_over) Send(EventKind::kReleased, life.pair.decode, sampled.request);
      return End(sampled.request);
    }
    if (!hands_over) return;
    ++result_.handoffs;
    const double landed = std::max(life.kv_landed, now_);
    result_.exposed_seconds += landed - now_;
    const auto decode = static_cast<uint32_t>(life.pair.decode);
    Add(landed + options_.message_seconds, {EventKind::kReceived, decode, sampled.request});
    Add(landed + 2 * options_.message_seconds, {EventKind::kReleased, index, sampled.request});
  }

  void End(RequestIndex request) {
    const RequestResult& result = result_.requests[request];
    const bool met = result.complete && (options_.ttft_slo <= 0 || result.first_token <= options_.ttft_slo) &&
                     (options_.tpot_slo <= 0 || result.tpot() <= options_.tpot_slo);
    if (!met && request >= options_.warmup) ++result_.misses;
  }

  const SimulationOptions& options_;
  const std::span<const SimulatedRequest> requests_;
  SimulatedRouter router_;
  std::vector<Worker> workers_;
  std::vector<Life> lives_;
  EventQueue<Event> events_;
  SimulationResult result_;
  double now_ = 0;
  uint64_t under_way_ = 0;  // events but for reports
};

}  // namespace

SimulationResult Simulate(const SimulationOptions& options, std::span<const SimulatedRequest> requests) {
  return Simulation(options, requests).Run();
}

}  // namespace baton::plan
