// SPDX-License-Identifier: Apache-2.0
#include "worker/options.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "common/cpus.h"
#include "common/metrics.h"
#include "common/status_macros.h"
#include "engine/formats/step_profile.h"
#include "engine/kernels/backend.h"

namespace baton {
namespace {

constexpr size_t kMinSecretBytes = 16;
constexpr size_t kMaxSecretBytes = 4096;
constexpr uint64_t kMinMessageBytes = 1 << 16;
constexpr uint64_t kMaxMessageBytes = 1 << 30;

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "localhost";
}

absl::Status CheckModel(const std::string& model) {
  if (model.empty()) {
    return absl::InvalidArgumentError(
        "model is not set, expected the folder or the GGUF file of a model: --model PATH");
  }
  std::error_code error;
  const std::filesystem::file_type type = std::filesystem::status(model, error).type();
  const bool is_folder = type == std::filesystem::file_type::directory;
  const bool has_config = is_folder && std::filesystem::exists(std::filesystem::path(model) / "config.json", error);
  if (has_config || type == std::filesystem::file_type::regular) return absl::OkStatus();
  const std::string what = is_folder                                       ? "has no config.json"
                           : type == std::filesystem::file_type::not_found ? "does not exist"
                           : type == std::filesystem::file_type::none      ? error.message()
                                                                           : "is neither";
  return absl::InvalidArgumentError(
      absl::StrCat("model ", model, ": ", what, ", expected the folder or the GGUF file of a model"));
}

absl::Status CheckCpus(const std::vector<int>& cpus, int threads) {
  if (cpus.empty()) return absl::OkStatus();
  if (static_cast<int>(cpus.size()) != threads) {
    return absl::InvalidArgumentError(
        absl::StrCat("cpus names ", cpus.size(), " CPUs for ", threads, " threads, expected one each"));
  }
  std::vector<int> sorted = cpus;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    return absl::InvalidArgumentError(absl::StrCat("cpus names CPU ", *twice, " twice, expected one thread on each"));
  }
  return absl::OkStatus();
}

// Only prompts that are computed here take pages from tiers.
absl::Status CheckTiers(const WorkerOptions& options, std::string_view role) {
  if (options.kv_tier_memory.bytes == 0 && options.kv_tier_file.empty()) return absl::OkStatus();
  const std::string option = options.kv_tier_file.empty() ? "kv-tier-memory" : "kv-tier-file";
  if (role == "decode") {
    return absl::InvalidArgumentError(absl::StrCat(
        option, " is set and role is decode, expected a worker that computes prompts: baton-prefill or role both"));
  }
  if (options.prefix_cache == "off") {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " is set and prefix-cache is off, expected on: tiers keep cached pages"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadSecret(const std::string& file) {
  std::string secret;
  if (!file.empty()) {
    std::ifstream in(file, std::ios::binary);
    if (!in) return absl::InvalidArgumentError(absl::StrCat("secret-file ", file, " cannot be read"));
    secret.resize(kMaxSecretBytes + 1);
    secret.resize(static_cast<size_t>(in.read(secret.data(), static_cast<std::streamsize>(secret.size())).gcount()));
    if (secret.size() > kMaxSecretBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("secret-file ", file, " is longer than ", kMaxSecretBytes, " bytes"));
    }
  } else if (const char* env = std::getenv("BATON_SECRET"); env != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    secret = env;
  }
  secret = std::string(absl::StripAsciiWhitespace(secret));
  if (!secret.empty() && secret.size() < kMinSecretBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the secret of ", file.empty() ? "$BATON_SECRET" : "secret-file " + file, " has ", secret.size(),
                     " bytes, expected at least ", kMinSecretBytes, " (for instance from: openssl rand -hex 32)"));
  }
  return secret;
}

}  // namespace

void WorkerOptions::AddTo(OptionSet& set, const char* handoff_listen_help) {
  set.Add("model", &model,
          "folder of the model in Hugging Face form, or GGUF file, of a split file the first part (required)");
  set.Add("model-name", &model_name, "name of the model for clients (default: the name of the folder or file)");
  set.Add("worker-id", &worker_id, "name in logs, metrics and status (default: <role>-<host>-<port>)");
  set.Add("listen", &listen, "host:port for gRPC, from the router");
  set.Add("metrics-listen", &metrics_listen, "host:port for http /metrics; empty: not served");
  set.AddChoice("metrics-names", &metrics_names, kMetricsNames,
                "names of the metrics: Baton's, vLLM's for the same facts, or both");
  std::vector<std::string> devices = KnownDevices();
  devices.emplace_back("replay");
  set.AddChoice(
      "device", &device, devices,
      "replay: computes nothing, takes a configured time, and samples tokens that depend on all earlier tokens; for "
      "load tests, needs a model's configuration and tokenizer but no weights");
  set.Add("replay-step", &replay_step, "with replay: time of a step");
  set.Add("replay-prefill-speed", &replay_prefill_speed, "with replay: prompt tokens per second", 1);
  set.Add("replay-profile", &replay_profile,
          "with replay: file of bench engine --profile, so that steps take the times of a measured model (default: "
          "replay-step and replay-prefill-speed)");
  set.Add("threads", &threads,
          "compute threads; 0: one per CPU that this process may use, by its affinity and its cgroup's quota", 0, 1024);
  set.AddList("cpus", &cpus, "pin the compute threads to these CPUs, one each (default: unpinned)");
  set.AddChoice("kernels", &kernels, {"auto", "scalar", "avx2", "avx512", "avx512-vnni", "avx512-bf16"},
                "family of compute kernels");
  set.AddChoice("quantize", &quantize, {"off", "int8", "int4"},
                "round float weights while loading, in groups of 32 with a scale");
  set.AddChoice("kv-dtype", &kv_dtype, {"auto", "f32", "f16", "bf16", "int8", "fp8"},
                "type of the KV cache; auto: f32 for F32 weights, else bf16; int8 and fp8 (E4M3) have a scale per "
                "token and head");
  set.Add("page-tokens", &page_tokens, "tokens per KV page, a power of two", 1, 1024);
  set.Add("kv-memory", &kv_memory, "memory for KV pages");
  set.Add("pages", &pages, "number of KV pages; 0: as many as fit kv-memory", 0, 1 << 28);
  set.AddChoice("prefault", &prefault, {"on", "off"},
                "take all memory at the start; off: take memory on first use, which slows the first requests");
  set.AddChoice("prefix-cache", &prefix_cache, {"on", "off"},
                "keep the pages of finished requests while there is room, for requests with the same prefix");
  set.Add(
      "kv-tier-memory", &kv_tier_memory,
      "memory for copies of cached KV pages, from which evicted pages come back; 0: none. Of use beside a pool that "
      "is not in this memory itself, or in front of a file");
  set.Add(
      "kv-tier-file", &kv_tier_file,
      "local file for copies of cached KV pages, from which evicted pages come back, also after a restart; one file "
      "for each worker; empty: none");
  set.Add("kv-tier-file-size", &kv_tier_file_size, "size of kv-tier-file, taken at the start");
  set.Add("token-budget", &schedule.token_budget, "tokens computed in one step", 1, 1 << 20);
  set.Add("chunk-tokens", &schedule.chunk_tokens, "tokens of one prompt in one step; 0: the token budget", 0, 1 << 20);
  set.Add("max-sequences", &schedule.max_sequences, "sequences in progress at once", 1, 1 << 16);
  set.AddChoice(
      "batching", &batching, {"continuous", "static", "window"},
      "when prompts that wait may start: at the next step; when no sequence runs; or then, after batch-window. "
      "static and window are for comparison");
  set.Add("batch-window", &schedule.batch_window, "with --batching window: how long an idle worker collects prompts");
  set.Add("max-queue", &max_queue, "requests that may wait", 1, 1 << 20);
  set.AddChoice("transport", &transport.path, {"auto", "tcp", "shm"}, "path of KV pages between workers");
  set.Add("handoff-host", &transport.local_host,
          "address of this host whose network device alone carries handoffs (default: the host of the address listened "
          "on)");
  set.Add("secret-file", &secret_file, "file with the secret that all workers share (default: $BATON_SECRET)");
  set.Add("heartbeat-interval", &transport.heartbeat_interval, "between workers", absl::Milliseconds(10),
          absl::Seconds(60));
  set.Add("silent-after", &transport.silent_after, "a peer not heard for this long is silent", absl::Milliseconds(20),
          absl::Seconds(60));
  set.Add("peer-timeout", &transport.peer_timeout, "a peer not heard for this long is given up", absl::Milliseconds(50),
          absl::Hours(1));
  set.Add("drain-timeout", &drain_timeout,
          "on SIGTERM and before a change of the role, how long running requests may take to finish or to leave");
  set.Add("role-cooldown", &role_cooldown, "least time between two changes of the role that are not forced",
          absl::ZeroDuration(), absl::Hours(24));
  set.Add("handoff-listen", &transport.listen_address, handoff_listen_help);
  set.Add("handoff-advertise", &transport.advertise_address,
          "host:port for other workers' connections (default: the address listened on)");
  set.Add("max-bypass", &max_bypass,
          "in roles decode and both, how often younger requests may pass a reservation or local prompt that waits for "
          "room");
  set.Add("growth-watermark-pages", &growth_watermark_pages,
          "in roles decode and both, most free pages that a grant leaves for running sequences, one for each");
  set.Add("max-message-bytes", &max_message_bytes, "largest gRPC message");
  set.AddChoice("log.level", &log.level, {"debug", "info", "warning", "error"}, "least level in the log");
  set.AddChoice("log.format", &log.format, {"text", "json"}, "form of a log line");
  set.AddPresets(
      "preset", &preset,
      {{"chat", "short steps with even gaps between tokens, while prompts take longer", {{"token-budget", "256"}}},
       {"balanced", "the defaults", {}},
       {"batch",
        "large steps and many sequences, for most tokens per second with long gaps",
        {{"token-budget", "2048"}, {"max-sequences", "256"}, {"max-queue", "4096"}}}});
}

absl::Status WorkerOptions::Finalize(std::string_view role, bool needs_secret) {
  BATON_ASSIGN_OR_RETURN(const HostPort address, OfOption("listen", ParseHostPort(listen)));
  if (worker_id.empty()) worker_id = absl::StrCat(std::string(role), "-", HostName(), "-", address.port);
  BATON_RETURN_IF_ERROR(CheckModel(model));
  if (!metrics_listen.empty()) {
    BATON_RETURN_IF_ERROR(OfOption("metrics-listen", ParseHostPort(metrics_listen)).status());
  }
  if (max_message_bytes.bytes < kMinMessageBytes || max_message_bytes.bytes > kMaxMessageBytes) {
    return absl::InvalidArgumentError(absl::StrCat("max-message-bytes is ", max_message_bytes.bytes, ", expected ",
                                                   kMinMessageBytes, " to ", kMaxMessageBytes));
  }
  if (model_name.empty()) {
    const std::filesystem::path path = std::filesystem::weakly_canonical(model);
    model_name = (path.extension() == ".gguf" ? path.stem() : path.filename()).string();
  }
  BATON_RETURN_IF_ERROR(CheckTiers(*this, role));
  if (!replay_profile.empty() && device != "replay") {
    return absl::InvalidArgumentError(absl::StrCat("replay-profile is set and device is ", device,
                                                   ", expected the device replay, which alone reads the file"));
  }
  if (threads == 0) threads = cpus.empty() ? UsableCpus() : static_cast<int>(cpus.size());
  BATON_RETURN_IF_ERROR(CheckCpus(cpus, threads));
  if (!std::has_single_bit(static_cast<unsigned>(page_tokens))) {
    return absl::InvalidArgumentError(absl::StrCat("page-tokens is ", page_tokens, ", expected a power of two"));
  }
  if (schedule.chunk_tokens > schedule.token_budget) {
    return absl::InvalidArgumentError(absl::StrCat("chunk-tokens is ", schedule.chunk_tokens, " and token-budget ",
                                                   schedule.token_budget,
                                                   ", expected chunks no larger than the budget of a step"));
  }
  if (batching != "continuous") schedule.batching = batching == "static" ? Batching::kStatic : Batching::kWindow;
  if (schedule.chunk_tokens == 0) schedule.chunk_tokens = schedule.token_budget;
  if (transport.silent_after >= transport.peer_timeout || transport.heartbeat_interval >= transport.silent_after) {
    return absl::InvalidArgumentError(absl::StrCat(
        "heartbeat-interval, silent-after and peer-timeout are ", absl::FormatDuration(transport.heartbeat_interval),
        ", ", absl::FormatDuration(transport.silent_after), " and ", absl::FormatDuration(transport.peer_timeout),
        ", expected heartbeat-interval < silent-after < peer-timeout"));
  }
  BATON_ASSIGN_OR_RETURN(transport.secret, ReadSecret(secret_file));
  transport.prefault = prefault == "on";
  if (needs_secret && transport.secret.empty()) {
    return absl::InvalidArgumentError(
        "no secret, expected --secret-file FILE or $BATON_SECRET, the same on all workers (for instance from: openssl "
        "rand -hex 32)");
  }
  return absl::OkStatus();
}

absl::StatusOr<ReplayOptions> WorkerOptions::ForReplay() const {
  ReplayOptions options{
      .cost = {.step = absl::ToDoubleSeconds(replay_step), .prompt_token = 1.0 / replay_prefill_speed},
      .page_tokens = page_tokens,
      .kv_dtype = KvTypeFromName(kv_dtype)};  // "auto" names no type
  if (!replay_profile.empty()) {
    BATON_ASSIGN_OR_RETURN(const StepProfile profile, OfOption("replay-profile", ReadStepProfile(replay_profile)));
    options.cost = profile.cost;
  }
  return options;
}

// No prompt of a prefill worker passes an older prompt. Sequences do not grow there: no pages are left for growth.
CapacityLedger::Limits WorkerOptions::Capacity(v1::WorkerRole role) const {
  const bool decodes = role != v1::WORKER_ROLE_PREFILL;
  return {.max_sequences = schedule.max_sequences,
          .max_waiting_reservations = decodes ? max_queue : 0,
          .max_bypass = decodes ? max_bypass : 0,
          .growth_watermark_pages = decodes ? growth_watermark_pages : 0};
}

ModelOptions WorkerOptions::ForModel() const {
  ModelOptions options;
  options.device = device;
  options.threads = threads;
  options.cpus = cpus;
  options.kernels = kernels;
  options.page_tokens = page_tokens;
  if (quantize != "off") options.quantize = quantize == "int8" ? TensorType::kQ8_0 : TensorType::kQ4_0;
  options.kv_dtype = KvTypeFromName(kv_dtype);  // "auto" names no type
  return options;
}

}  // namespace baton
