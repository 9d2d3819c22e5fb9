// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/bench_serve_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/console/console.h"
#include "cli/flags/flags.h"
#include "cli/flags/generation_flags.h"
#include "common/address.h"
#include "common/http_post.h"
#include "common/status_macros.h"

namespace baton {
namespace {

constexpr char kHttp[] = "http://";

bool IsUrl(const std::string& target) { return target.find("://") != std::string::npos; }

absl::Status SetLoadTarget(const std::string& text, std::string* target) {
  if (IsUrl(text)) {
    BATON_RETURN_IF_ERROR(ParseHttpTarget(text).status());
  } else if (const auto parsed = ParseHostPort(text); !parsed.ok() || parsed->port == 0) {
    return absl::InvalidArgumentError("expected HOST:PORT with a port of 1 to 65535, or http://HOST:PORT");
  }
  *target = text;
  return absl::OkStatus();
}

void AddTargetFlags(CLI::App& command, BenchServeFlags* flags) {
  AddFlag(
      command, "--target", "TEXT", "HOST:PORT of the router, or http://HOST:PORT of an OpenAI-compatible server",
      [flags](const std::string& text) { return SetLoadTarget(text, &flags->target); }, flags->target);
  AddChoice<LoadApi>(
      command, "--api", &flags->api,
      "what the target speaks: Baton's gRPC, or OpenAI's /v1/completions with streamed answers (default: "
      "openai for a target that begins with http://, otherwise baton)",
      {{"baton", LoadApi::kBaton}, {"openai", LoadApi::kOpenAi}});
  command.add_option("--api-key-file", flags->api_key_file,
                     "file with the API key for --api openai (default: the environment variable OPENAI_API_KEY)");
  command.add_option("--model", flags->workload.model, "model name (default: the only model served)");
  AddWholeNumber(command, "--vocab-size", &flags->vocab_size,
                 "token ids of prompts are below this number (default: as the server tells)", 1, 1 << 24);
  AddWholeNumber(command, "--max-context-tokens", &flags->max_context_tokens,
                 "the most tokens of a prompt and its answer (default: as the server tells)", 2, 1 << 28);
}

void AddArrivalFlags(CLI::App& command, BenchServeFlags* flags) {
  Workload& workload = flags->workload;
  CLI::Option* const rate = AddNumber(command, "--rate", &workload.rate, "requests per second", 1e-3, 1e5);
  rate->each([flags](const std::string&) { flags->has_rate = true; });
  AddChoice<ArrivalProcess>(command, "--arrivals", &flags->arrivals,
                            "gaps between requests (default: trace with --trace and without --rate, otherwise poisson)",
                            {{"poisson", ArrivalProcess::kPoisson},
                             {"gamma", ArrivalProcess::kGamma},
                             {"constant", ArrivalProcess::kConstant},
                             {"trace", ArrivalProcess::kTrace}});
  AddNumber(command, "--burstiness", &workload.burstiness,
            "with --arrivals gamma: the shape; 1 is poisson, less comes in bursts, more is more even", 1e-3, 1e6);
  CLI::Option* const concurrency =
      AddWholeNumber(command, "--concurrency", &flags->load.concurrency,
                     "send when fewer than this many requests are unanswered, at no rate (closed loop); with --turns, "
                     "begin a conversation when fewer are under way",
                     1, 100'000)
          ->excludes(rate);
  CLI::Option* const requests =
      AddWholeNumber(command, "--requests", &workload.requests, "number of requests", 1, 1'000'000);
  command
      .add_option("--duration", flags->duration,
                  "send as many requests as arrive at the rate in this time, such as 60s")
      ->excludes(requests)
      ->excludes(concurrency);
  AddWholeNumber(command, "--warmup", &flags->load.warmup, "the first requests, which are sent and not measured", 0,
                 1'000'000);
  AddWholeNumber(command, "--max-in-flight", &flags->load.max_in_flight, "requests beyond this are counted as NOT_SENT",
                 1, 100'000);
}

void AddLengthFlags(CLI::App& command, BenchServeFlags* flags) {
  Workload& workload = flags->workload;
  AddWholeNumber(command, "--prompt-tokens", &workload.prompt_tokens, "random token ids per prompt", 1, 1 << 20);
  AddWholeNumber(command, "--output-tokens", &workload.output_tokens,
                 "tokens per answer; end tokens do not end an answer", 1, 1 << 20);
  CLI::Option* const trace = command.add_option("--trace", flags->trace,
                                                "file with recorded requests to replay: JSON lines in Mooncake's form, "
                                                "where prompts begin alike as recorded, or CSV in Azure's form");
  for (const char* const name : {"--prompt-tokens", "--output-tokens"}) {
    trace->excludes(command.get_option(name));
  }
  AddNumber(command, "--trace-scale", &flags->replay.length_scale, "factor for the trace's numbers of tokens", 1e-6,
            1e3)
      ->needs(trace);
  AddNumber(command, "--trace-speed", &flags->replay.speed,
            "factor for the speed at which the recorded requests arrive", 1e-3, 1e6)
      ->needs(trace);
  AddChoice<TooLong>(command, "--too-long", &flags->too_long,
                     "what to do with a trace's requests that are longer than the model's context (default: send)",
                     {{"send", TooLong::kSend}, {"cut", TooLong::kCut}, {"drop", TooLong::kDrop}})
      ->needs(trace);
  AddWholeNumber(command, "--turns", &workload.turns,
                 "requests of a conversation: a turn's prompt is the prompt and answer of the turn before, and "
                 "--prompt-tokens more; --rate, --requests and --warmup then count conversations",
                 1, 1000)
      ->excludes(trace);
  command.add_option("--think-time", flags->think_time, "from the end of an answer to the next turn")
      ->capture_default_str();
  AddWholeNumber(command, "--seed", &workload.seed, "seed of arrivals and prompts; each further run adds 1", 0,
                 UINT64_MAX);
  command.add_flag("--reuse-cache", flags->reuse_cache,
                   "use prefixes that earlier runs left in the workers' caches (default: a cache_salt per run)");
}

void AddRunFlags(CLI::App& command, BenchServeFlags* flags) {
  CLI::Option* const slo =
      AddFlag(command, "--slo", "TIMES", "objectives, such as ttft=1.3s,tpot=22ms: report the share of requests within",
              [flags](const std::string& text) {
                const absl::StatusOr<Slo> parsed = ParseSlo(text);
                if (parsed.ok()) flags->slo = *parsed;
                return parsed.status();
              });
  CLI::Option* const runs =
      AddWholeNumber(command, "--runs", &flags->runs, "repeat the measurement, for `baton bench compare`", 1, 1000);
  CLI::Option* const goodput =
      command
          .add_flag("--goodput", flags->goodput,
                    "find the highest rate at which enough requests are within --slo: a run for each rate tried, "
                    "beginning with --rate")
          ->needs(slo)
          ->excludes(runs)
          ->excludes(command.get_option("--concurrency"));
  AddNumber(command, "--attain", &flags->search.attain, "with --goodput: the share of requests within --slo", 0.01,
            0.999)
      ->needs(goodput);
  AddNumber(command, "--width", &flags->search.width,
            "with --goodput: stop when the rates that meet and miss differ by at most this share", 0.001, 1)
      ->needs(goodput);
  AddWholeNumber(command, "--max-runs", &flags->search.max_runs, "with --goodput: stop after this many runs", 1, 1000)
      ->needs(goodput);
  command.add_option("--timeout", flags->timeout, "time limit of each request")->capture_default_str();
}

void AddOutputFlags(CLI::App& command, BenchServeFlags* flags) {
  command.add_flag("--json", flags->json, "print one JSON line a run instead of the table");
  command
      .add_option("--export-aiperf", flags->aiperf_file,
                  "write the run in the form of AIPerf's profile_export_aiperf.json")
      ->excludes(command.get_option("--runs"))
      ->excludes(command.get_option("--goodput"));
  command.add_option("--html", flags->html_file, "write a page with plots of the runs");
}

}  // namespace

void AddBenchServeFlags(CLI::App& command, BenchServeFlags* flags) {
  command.footer(
      "Requests that succeed are measured. Requests that fail are counted by error, with the first reason.\n"
      "ITL: a message of n tokens that comes g after the message before counts as n gaps of g/n.\n"
      "With --api openai, prompts are lists of token ids, and max_tokens, min_tokens and ignore_eos force the "
      "lengths.\n"
      "A message's tokens are counted by usage, or else an event counts as one token.\n"
      "The exit code is 0 when at least one request succeeds.");
  AddTargetFlags(command, flags);
  AddArrivalFlags(command, flags);
  AddLengthFlags(command, flags);
  AddRunFlags(command, flags);
  AddOutputFlags(command, flags);
}

absl::Status CompleteFlags(BenchServeFlags& flags) {
  const auto usage = [](const auto&... parts) {
    return UsageError(absl::InvalidArgumentError(absl::StrCat(parts...)));
  };
  BATON_ASSIGN_OR_RETURN(flags.load.request_timeout, UsageError(ParseTimeout("--timeout", flags.timeout)));
  if (!absl::ParseDuration(flags.think_time, &flags.workload.think_time) ||
      flags.workload.think_time < absl::ZeroDuration() || flags.workload.think_time > absl::Hours(24)) {
    return usage("--think-time: \"", flags.think_time, "\", expected a duration such as 0s or 2s, at most 24h");
  }
  if (!flags.api) flags.api = IsUrl(flags.target) ? LoadApi::kOpenAi : LoadApi::kBaton;
  if (*flags.api == LoadApi::kBaton && IsUrl(flags.target)) {
    return usage("--api baton: expected --target HOST:PORT, got ", flags.target);
  }
  if (*flags.api == LoadApi::kOpenAi && !IsUrl(flags.target)) flags.target = absl::StrCat(kHttp, flags.target);

  const bool needs_rate = flags.goodput || !flags.duration.empty();
  const bool as_recorded = !flags.trace.empty() && !flags.has_rate && !needs_rate;
  flags.workload.arrivals = flags.arrivals.value_or(as_recorded ? ArrivalProcess::kTrace : ArrivalProcess::kPoisson);
  if (flags.workload.arrivals == ArrivalProcess::kTrace) {
    if (flags.trace.empty()) return usage("--arrivals trace needs --trace");
    if (needs_rate) return usage("--arrivals trace has no rate for ", flags.goodput ? "--goodput" : "--duration");
  }
  if (!flags.duration.empty()) {
    BATON_ASSIGN_OR_RETURN(flags.run_time, UsageError(ParseTimeout("--duration", flags.duration)));
    if (*flags.run_time > absl::Hours(24 * 7)) return usage("--duration ", flags.duration, ": expected at most 168h");
  }
  flags.search.first_rate = flags.workload.rate;
  return absl::OkStatus();
}

}  // namespace baton
