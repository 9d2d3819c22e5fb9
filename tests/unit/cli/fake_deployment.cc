// SPDX-License-Identifier: Apache-2.0
#include "fake_deployment.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/arguments.h"
#include "common/split_mix.h"

namespace baton::testing {
namespace {

constexpr uint32_t kVocabulary = 1000;

void AddToken(const v1::GenerateRequest& request, uint32_t index, v1::Chunk& chunk) {
  uint64_t hash = request.sampling().seed();
  for (const int32_t id : request.token_ids().ids()) hash = SplitMix(hash + static_cast<uint64_t>(id));
  const uint64_t drawn = SplitMix(hash + index);
  const auto token = static_cast<int32_t>(drawn % kVocabulary);
  chunk.add_token_ids(token);
  absl::StrAppend(chunk.mutable_text(), " ", token);
  v1::TokenLogprobs& logprobs = *chunk.add_logprobs();
  logprobs.mutable_chosen()->set_token_id(token);
  logprobs.mutable_chosen()->set_logprob(-static_cast<float>(drawn % 997) / 100);
  *logprobs.add_top() = logprobs.chosen();
}

void AddAttempt(const std::string& prefill, const std::string& decode, const std::string& ended_by,
                v1::Finish& finish) {
  v1::AttemptInfo& attempt = *finish.add_attempts();
  attempt.set_attempt(static_cast<uint32_t>(finish.attempts_size()));
  if (prefill != decode) attempt.set_prefill_worker(prefill);
  attempt.set_decode_worker(decode);
  attempt.set_kv_bytes(prefill == decode ? 0 : 1 << 20);
  attempt.set_transport(prefill == decode ? "" : "ucx:shm");
  attempt.set_ended_by(ended_by);
}

}  // namespace

FakeDeployment::FakeDeployment() {
  router.on_generate = [this](grpc::ServerContext&, const v1::GenerateRequest& request,
                              grpc::ServerWriter<v1::GenerateResponse>& writer) { return Answer(request, writer); };
  router.status.set_ready(true);
  router.status.mutable_router()->set_version(std::string(BatonVersion()));
}

void FakeDeployment::AddWorker(const std::string& id, const std::string& role, const std::string& numerics_id,
                               const std::string& model) {
  v1::WorkerInfo& worker = *router.status.add_workers();
  worker.set_worker_id(id);
  worker.set_role(role);
  worker.set_model(model);
  worker.set_state("serving");
  worker.set_numerics_id(numerics_id);
  worker.mutable_facts()->set_version(std::string(BatonVersion()));
  worker.mutable_facts()->set_host(absl::StrCat("host of ", id));
  const auto add_pair = [&](const std::string& prefill, const std::string& decode) {
    v1::PairInfo& pair = *router.status.add_pairs();
    pair.set_prefill_worker(prefill);
    pair.set_decode_worker(decode);
    pair.set_state("ready");
  };
  for (const v1::WorkerInfo& other : router.status.workers()) {
    if (other.numerics_id() != numerics_id || other.model() != model) continue;
    if (role == "prefill" && other.role() != "prefill") add_pair(id, other.worker_id());
    if (role != "prefill" && other.role() == "prefill") add_pair(other.worker_id(), id);
  }
  if (role == "both") add_pair(id, id);
  for (const v1::ModelInfo& known : router.models.models()) {
    if (known.name() == model && known.numerics_id() == numerics_id) return;
  }
  v1::ModelInfo& info = *router.models.add_models();
  info.set_name(model);
  info.set_numerics_id(numerics_id);
  info.set_vocab_size(kVocabulary);
  info.set_max_context_tokens(512);
  info.set_ready(true);
}

CliResult FakeDeployment::Run(std::vector<std::string> arguments) const {
  arguments.insert(arguments.end(), {"--target", router.target()});
  return RunCli(arguments);
}

FakeRun FakeDeployment::Begin(const v1::GenerateRequest& request) {
  MutexLock lock(mutex_);
  const std::string ids = request.token_ids().SerializeAsString();
  FakeRun run{.request = request, .running = ++running_};
  run.cached = !seen_.insert(absl::StrCat(request.cache_salt(), "|", ids)).second && prefix_cache;
  return run;
}

grpc::Status FakeDeployment::Answer(const v1::GenerateRequest& request,
                                    grpc::ServerWriter<v1::GenerateResponse>& writer) {
  FakeRun run = Begin(request);
  const v1::Pin& pin = request.pin();
  const uint32_t tokens = request.sampling().max_tokens();
  const uint32_t moves_at = std::max(migrates_at, pin.migrate_after_tokens());
  const grpc::Status refused = refuse(run);
  for (uint32_t i = 0; refused.ok() && i < tokens; ++i) {
    run.migrated = !pin.migrate_to().empty() && i >= moves_at;
    v1::GenerateResponse response;
    response.mutable_chunk()->set_output_index(i);
    AddToken(request, i, *response.mutable_chunk());
    spoil(run, *response.mutable_chunk());
    writer.Write(response);
  }
  {
    MutexLock lock(mutex_);
    --running_;
  }
  if (!refused.ok()) return refused;
  v1::GenerateResponse last;
  v1::Finish& finish = *last.mutable_finish();
  finish.set_reason(v1::FINISH_REASON_LENGTH);
  finish.mutable_usage()->set_cached_prompt_tokens(run.cached ? 16 : 0);
  AddAttempt(pin.prefill_worker(), pin.decode_worker(), run.migrated ? "migrated" : "finished", finish);
  if (run.migrated) AddAttempt(pin.decode_worker(), pin.migrate_to(), "finished", finish);
  finish.mutable_timings()->set_ttft_seconds(0.02);
  finish.mutable_timings()->set_transfer_seconds(0.01);
  finish.mutable_timings()->set_transfer_exposed_seconds(run.cached ? 0.01 : 0.001);
  spoil_finish(run, finish);
  writer.Write(last);
  return grpc::Status::OK;
}

}  // namespace baton::testing
