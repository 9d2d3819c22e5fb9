// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/client.h"
#include "cli/commands/commands.h"
#include "cli/console/interrupt.h"
#include "cli/flags/flags.h"
#include "cli/flags/generation_flags.h"
#include "cli/load/load_generator.h"
#include "cli/report/load_report.h"
#include "common/status_macros.h"

namespace baton {
namespace {

struct BenchFlags {
  std::string target = std::string(kDefaultTarget);
  Workload workload;
  LoadOptions load;
  std::string timeout = "5m";
  bool json = false;
  bool reuse_cache = false;
  std::string trace;
  TraceOptions replay;
  TooLong too_long = TooLong::kSend;
  std::optional<ArrivalProcess> arrivals;
  bool has_rate = false;
  std::optional<Slo> slo;
};

// Reads the trace, fits it to the model, and says how many requests did not fit.
absl::Status LoadTrace(BenchFlags& flags, const v1::ModelInfo& model, const Console& console) {
  flags.replay.max_requests = flags.workload.requests;
  BATON_ASSIGN_OR_RETURN(flags.workload.trace, ReadTrace(flags.trace, flags.replay));
  Trace& trace = *flags.workload.trace;
  const auto all = trace.requests.size();
  const int max_tokens = static_cast<int>(std::min<uint32_t>(model.max_context_tokens(), INT32_MAX));
  const int too_long = max_tokens > 0 ? FitTrace(trace, flags.too_long, max_tokens) : 0;
  if (too_long > 0) {
    constexpr const char* kTreated[] = {"sent all the same", "cut", "dropped"};
    *console.err << absl::StrCat(too_long, " of ", all, " requests are longer than the model's ", max_tokens,
                                 " tokens: ", kTreated[static_cast<int>(flags.too_long)], " (--too-long)\n");
  }
  if (trace.requests.empty())
    return absl::InvalidArgumentError("every request of the trace is longer than the model's context");
  flags.workload.requests = static_cast<int>(trace.requests.size());
  return absl::OkStatus();
}

// Returns the model to send load to: the named one, or the only one served.
absl::StatusOr<v1::ModelInfo> FindModel(Client& client, const std::string& name) {
  BATON_ASSIGN_OR_RETURN(const v1::ListModelsResponse served, client.ListModels(kCallTimeout));
  for (const v1::ModelInfo& model : served.models()) {
    if (model.name() == name || (name.empty() && served.models_size() == 1)) return model;
  }
  const std::string names = absl::StrJoin(
      served.models(), ", ", [](std::string* out, const v1::ModelInfo& model) { absl::StrAppend(out, model.name()); });
  return absl::NotFoundError(absl::StrCat(client.target(), " serves ", names.empty() ? "no model" : names,
                                          name.empty() ? ": expected --model" : absl::StrCat(", not ", name)));
}

absl::Status RunBenchServe(BenchFlags& flags, const Console& console) {
  BATON_ASSIGN_OR_RETURN(flags.load.request_timeout, UsageError(ParseTimeout("--timeout", flags.timeout)));
  if (!flags.reuse_cache) flags.workload.cache_salt = FreshCacheSalt();
  const bool as_recorded = !flags.trace.empty() && !flags.has_rate;
  flags.workload.arrivals = flags.arrivals.value_or(as_recorded ? ArrivalProcess::kTrace : ArrivalProcess::kPoisson);
  if (flags.workload.arrivals == ArrivalProcess::kTrace && flags.trace.empty()) {
    return UsageError(absl::InvalidArgumentError("--arrivals trace needs --trace"));
  }
  BATON_ASSIGN_OR_RETURN(const auto client, Client::Connect(flags.target, kConnectTimeout, *console.interrupt));
  BATON_ASSIGN_OR_RETURN(const v1::ModelInfo model, FindModel(*client, flags.workload.model));
  flags.workload.model = model.name();
  flags.workload.vocab_size = model.vocab_size();
  if (!flags.trace.empty()) BATON_RETURN_IF_ERROR(LoadTrace(flags, model, console));
  if (flags.load.warmup >= flags.workload.requests) {
    return UsageError(absl::InvalidArgumentError(absl::StrCat("--warmup ", flags.load.warmup, " leaves none of ",
                                                              flags.workload.requests, " requests to measure")));
  }

  const LoadReport report =
      MakeReport(GenerateLoad(*client, flags.workload, flags.load, *console.interrupt), flags.slo);
  *console.out << (flags.json ? absl::StrCat(ToJson(flags.target, flags.workload, report), "\n")
                              : ToTable(flags.workload, flags.load, report))
               << std::flush;
  // Failed requests are a result, too, for instance of an overload. Without a success there is no result.
  if (report.completed > 0 && !console.interrupt->triggered()) return absl::OkStatus();
  return absl::UnavailableError("no request succeeded");
}

}  // namespace

Command BenchServeCommand(CLI::App& command, const Console& console) {
  const auto flags = std::make_shared<BenchFlags>();
  command.footer(
      "Requests that succeed are measured. Requests that fail are counted by status code, with the first reason.\n"
      "ITL: a message of n tokens that comes g after the message before counts as n gaps of g/n.\n"
      "The exit code is 0 when at least one request succeeds.");
  AddTarget(command, &flags->target);
  Workload& workload = flags->workload;
  command.add_option("--model", workload.model, "model name (default: the only model served)");
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
  AddWholeNumber(command, "--concurrency", &flags->load.concurrency,
                 "send when fewer than this many requests are unanswered, at no rate (closed loop)", 1, 100'000)
      ->excludes(rate);
  AddWholeNumber(command, "--requests", &workload.requests, "number of requests", 1, 1'000'000);
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
  AddWholeNumber(command, "--warmup", &flags->load.warmup, "the first requests, which are sent and not measured", 0,
                 1'000'000);
  AddFlag(command, "--slo", "TIMES", "objectives, such as ttft=1.3s,tpot=22ms: report the share of requests within",
          [flags](const std::string& text) {
            const absl::StatusOr<Slo> slo = ParseSlo(text);
            if (slo.ok()) flags->slo = *slo;
            return slo.status();
          });
  AddWholeNumber(command, "--seed", &workload.seed, "seed of arrivals and prompts", 0, UINT64_MAX);
  AddWholeNumber(command, "--max-in-flight", &flags->load.max_in_flight, "requests beyond this are counted as NOT_SENT",
                 1, 100'000);
  command.add_flag("--reuse-cache", flags->reuse_cache,
                   "use prefixes that earlier runs left in the workers' caches (default: a cache_salt per run)");
  command.add_option("--timeout", flags->timeout, "time limit of each request")->capture_default_str();
  command.add_flag("--json", flags->json, "print one JSON line instead of the table");
  return [flags, &console] { return RunBenchServe(*flags, console); };
}

}  // namespace baton
