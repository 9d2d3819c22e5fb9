// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
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
};

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
  if (!flags.trace.empty()) {
    flags.replay.max_requests = flags.workload.requests;
    BATON_ASSIGN_OR_RETURN(flags.workload.trace, ReadTrace(flags.trace, flags.replay));
    flags.workload.requests = static_cast<int>(flags.workload.trace->requests.size());
  }
  BATON_ASSIGN_OR_RETURN(const auto client, Client::Connect(flags.target, kConnectTimeout, *console.interrupt));
  BATON_ASSIGN_OR_RETURN(const v1::ModelInfo model, FindModel(*client, flags.workload.model));
  flags.workload.model = model.name();
  flags.workload.vocab_size = model.vocab_size();

  const LoadReport report = MakeReport(GenerateLoad(*client, flags.workload, flags.load, *console.interrupt));
  *console.out << (flags.json ? absl::StrCat(ToJson(flags.target, flags.workload, report), "\n")
                              : ToTable(flags.workload, report))
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
  AddNumber(command, "--rate", &workload.rate, "requests per second", 1e-3, 1e5);
  AddWholeNumber(command, "--requests", &workload.requests, "number of requests", 1, 1'000'000);
  AddWholeNumber(command, "--prompt-tokens", &workload.prompt_tokens, "random token ids per prompt", 1, 1 << 20);
  AddWholeNumber(command, "--output-tokens", &workload.output_tokens,
                 "tokens per answer; end tokens do not end an answer", 1, 1 << 20);
  CLI::Option* const trace = command.add_option("--trace", flags->trace,
                                                "file with recorded requests to replay, JSON lines in Mooncake's form; "
                                                "prompts begin alike where the recorded prompts did");
  for (const char* const name : {"--rate", "--prompt-tokens", "--output-tokens"}) {
    trace->excludes(command.get_option(name));
  }
  AddNumber(command, "--trace-scale", &flags->replay.length_scale, "factor for the trace's numbers of tokens", 1e-6,
            1e3)
      ->needs(trace);
  AddNumber(command, "--trace-speed", &flags->replay.speed,
            "factor for the speed at which the recorded requests arrive", 1e-3, 1e6)
      ->needs(trace);
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
