// SPDX-License-Identifier: Apache-2.0
#include "cli/pairs/measure_paths.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "cli/console/interrupt.h"
#include "cli/pairs/prompts.h"
#include "cli/pairs/send.h"
#include "common/steady_time.h"

namespace baton {
namespace {

// The first token comes from the prefill worker, and the second one shows that the sequence has arrived.
constexpr uint32_t kOutputTokens = 2;
// A smaller handoff shows the delay of messages, not the bandwidth.
constexpr uint64_t kLeastBytes = 64 << 10;
constexpr int kRepeats = 2;  // of a path that is slow

v1::GenerateRequest MakeRequest(const WorkerGroup& group, const WorkerPair& pair, const std::vector<int32_t>& prompt,
                                uint32_t output_tokens, const std::string& salt) {
  v1::GenerateRequest request;
  request.set_model(group.model);
  request.mutable_token_ids()->mutable_ids()->Assign(prompt.begin(), prompt.end());
  request.mutable_sampling()->set_temperature(0);
  request.mutable_sampling()->set_ignore_eos(true);
  request.mutable_sampling()->set_max_tokens(output_tokens);
  request.set_ttft_slo_seconds(0);
  request.set_tpot_slo_seconds(0);
  request.set_cache_salt(salt);
  *request.mutable_pin() = PinTo(pair);
  return request;
}

class Measurement {
 public:
  Measurement(Client& client, const WorkerGroup& group, const MeasureOptions& options, SteadyTime deadline,
              Interrupt& interrupt)
      : client_(client), group_(group), options_(options), deadline_(deadline), interrupt_(interrupt) {}

  MeasuredPath Run(const WorkerPair& pair, uint64_t number) {
    MeasuredPath path{.pair = pair};
    const int context = static_cast<int>(std::min<uint32_t>(group_.max_context_tokens, INT32_MAX));
    const int tokens = std::clamp(options_.prompt_tokens, 1, std::max(context - static_cast<int>(kOutputTokens), 1));
    path.prompt_tokens = static_cast<uint32_t>(tokens);
    const std::vector<int32_t> first = RandomTokens(group_.vocab_size, tokens, 2 * number);
    const std::vector<int32_t> second = RandomTokens(group_.vocab_size, tokens, 2 * number + 1);
    const std::string salt = FreshSalt();

    const std::optional<v1::Finish> computed = Ask(MakeRequest(group_, pair, first, kOutputTokens, salt), path);
    if (!computed) return path;
    const v1::AttemptInfo& attempt = computed->attempts(computed->attempts_size() - 1);
    path.transport = attempt.transport();
    path.kv_bytes = attempt.kv_bytes();
    path.ttft = computed->timings().ttft_seconds();
    path.transfer = computed->timings().transfer_seconds();
    path.exposed = computed->timings().transfer_exposed_seconds();
    NoteBandwidth(*computed, path);

    // An answer of one token needs no handoff, so that only the prefill worker caches the prompt.
    if (!Ask(MakeRequest(group_, pair, second, 1, salt), path)) return path;
    const std::optional<v1::Finish> cached = Ask(MakeRequest(group_, pair, second, kOutputTokens, salt), path);
    if (cached && cached->usage().cached_prompt_tokens() > 0) NoteBandwidth(*cached, path);
    return path;
  }

 private:
  // Fails, with the reason in `path`, if there is no answer from the pair.
  std::optional<v1::Finish> Ask(const v1::GenerateRequest& request, MeasuredPath& path) {
    const SentAnswer sent =
        Send(client_, {&request, 1}, {.at_once = 1, .request_timeout = options_.request_timeout, .deadline = deadline_},
             interrupt_)
            .front();
    if (sent.state == SentAnswer::State::kNotSent) path.failure = "the time for measurements was over";
    if (sent.state == SentAnswer::State::kFailed) path.failure = sent.reason;
    if (!path.failure.empty()) return std::nullopt;
    const int attempts = sent.finish.attempts_size();
    if (attempts == 0 || sent.finish.attempts(attempts - 1).decode_worker() != path.pair.decode ||
        sent.finish.attempts(attempts - 1).prefill_worker() != path.pair.prefill) {
      path.failure = "the answer came from other workers, though the request was pinned";
      return std::nullopt;
    }
    return sent.finish;
  }

  // A transfer that ended soon after the computation waited for the computation.
  static void NoteBandwidth(const v1::Finish& finish, MeasuredPath& path) {
    const v1::Timings& timings = finish.timings();
    const uint64_t bytes = finish.attempts(finish.attempts_size() - 1).kv_bytes();
    if (timings.transfer_seconds() <= 0 || bytes < kLeastBytes) return;
    const double speed = static_cast<double>(bytes) / timings.transfer_seconds();
    const bool waited = timings.transfer_exposed_seconds() < timings.transfer_seconds() / 2;
    const bool is_better =
        path.bytes_per_second == 0 || (path.waited_for_compute && (!waited || speed > path.bytes_per_second));
    if (!is_better) return;
    path.bytes_per_second = speed;
    path.waited_for_compute = waited;
  }

  Client& client_;
  const WorkerGroup& group_;
  const MeasureOptions& options_;
  const SteadyTime deadline_;
  Interrupt& interrupt_;
};

bool IsSlow(const std::vector<MeasuredPath>& paths, size_t index) {
  if (paths[index].bytes_per_second <= 0 || paths[index].waited_for_compute) return false;
  std::vector<double> others;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (i != index && paths[i].bytes_per_second > 0) others.push_back(paths[i].bytes_per_second);
  }
  return paths[index].bytes_per_second < kSlowShare * MedianOf(std::move(others));
}

}  // namespace

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

MeasuredPaths MeasurePaths(Client& client, const v1::GetStatusResponse& status, const v1::ListModelsResponse& models,
                           const MeasureOptions& options, Interrupt& interrupt) {
  MeasuredPaths measured;
  const SteadyTime deadline = SteadyTime::Now() + options.timeout;
  std::map<std::pair<std::string, std::string>, std::vector<WorkerPair>> ready;  // by model and numerics id
  for (const v1::PairInfo& pair : status.pairs()) {
    if (pair.state() != "ready" || pair.prefill_worker() == pair.decode_worker()) continue;
    const auto decode = std::ranges::find(status.workers(), pair.decode_worker(), &v1::WorkerInfo::worker_id);
    if (decode == status.workers().end()) continue;
    ready[{decode->model(), decode->numerics_id()}].push_back({pair.prefill_worker(), pair.decode_worker()});
  }
  uint64_t number = 0;
  // The plan knows the models' contexts and vocabularies; the pairs are those that are ready.
  for (const WorkerGroup& group : MakePlan(status, models, {.max_pairs = options.max_pairs, .seed = options.seed})) {
    const std::vector<WorkerPair>& pairs = ready[{group.model, group.numerics_id}];
    measured.possible += pairs.size();
    Measurement measurement(client, group, options, deadline, interrupt);
    std::vector<MeasuredPath> paths;
    for (const WorkerPair& pair : Choose(pairs, options.max_pairs, options.seed)) {
      if (interrupt.triggered()) return measured;
      paths.push_back(measurement.Run(pair, number++));
    }
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      for (size_t i = 0; i < paths.size(); ++i) {
        if (!IsSlow(paths, i)) continue;
        MeasuredPath again = measurement.Run(paths[i].pair, number++);
        if (again.failure.empty() && again.bytes_per_second > paths[i].bytes_per_second) paths[i] = std::move(again);
      }
    }
    measured.paths.insert(measured.paths.end(), paths.begin(), paths.end());
  }
  return measured;
}

}  // namespace baton
