// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "cli/commands/commands.h"
#include "cli/console/interrupt.h"
#include "cli/flags/flags.h"
#include "cli/load/slo.h"
#include "cli/load/trace.h"
#include "cli/plan/deployments.h"
#include "cli/report/plan_report.h"
#include "common/cpus.h"
#include "common/status_macros.h"
#include "engine/formats/step_profile.h"

namespace baton {
namespace {

constexpr double kGiga = 1e9;
constexpr double kGibi = 1 << 30;
constexpr int kMostWorkers = 4096;

struct PlanFlags {
  std::string profile;
  std::string decode_profile;
  std::string trace;
  TraceOptions replay{.max_requests = 1'000'000};
  TooLong too_long = TooLong::kSend;
  Slo slo;
  plan::Deployment deployment;
  int max_workers = 8;
  double kv_gibibytes = 0.5;
  ScheduleLimits schedule;
  plan::PlanQuery query;
  bool json = false;
};

absl::StatusOr<plan::WorkerKind> ReadKind(const std::string& file, const PlanFlags& flags) {
  BATON_ASSIGN_OR_RETURN(const StepProfile profile, ReadStepProfile(file));
  const double pages = flags.kv_gibibytes * kGibi / profile.kv_token_bytes / profile.page_tokens;
  if (pages < 2) {
    return absl::InvalidArgumentError(absl::StrCat("--kv-memory holds ", pages, " pages of ", profile.page_tokens,
                                                   " tokens with ", profile.kv_token_bytes,
                                                   " bytes each, expected 2 or more"));
  }
  return plan::WorkerKind{.cost = profile.cost,
                          .schedule = flags.schedule,
                          .pages = static_cast<int>(std::min<double>(pages, INT32_MAX)),
                          .page_tokens = profile.page_tokens,
                          .kv_token_bytes = profile.kv_token_bytes,
                          .layers = profile.layers,
                          .max_context_tokens = profile.max_context_tokens};
}

absl::Status LoadTrace(PlanFlags& flags) {
  std::optional<Trace>& trace = flags.query.load.workload.trace;
  BATON_ASSIGN_OR_RETURN(trace, ReadTrace(flags.trace, flags.replay));
  FitTrace(*trace, flags.too_long,
           std::min(flags.query.prefill.max_context_tokens, flags.query.decode.max_context_tokens));
  if (trace->requests.empty())
    return absl::InvalidArgumentError("every request of the trace is longer than the model's context");
  return absl::OkStatus();
}

absl::Status RunPlan(PlanFlags& flags, const Console& console) {
  plan::PlanQuery& query = flags.query;
  flags.schedule.chunk_tokens = flags.schedule.token_budget;
  BATON_ASSIGN_OR_RETURN(query.prefill, ReadKind(flags.profile, flags));
  BATON_ASSIGN_OR_RETURN(query.decode,
                         ReadKind(flags.decode_profile.empty() ? flags.profile : flags.decode_profile, flags));
  if (!flags.trace.empty()) BATON_RETURN_IF_ERROR(LoadTrace(flags));
  query.options.ttft_slo = absl::ToDoubleSeconds(flags.slo.ttft);
  query.options.tpot_slo = absl::ToDoubleSeconds(flags.slo.tpot);
  const auto& [prefill, decode, both] = flags.deployment;
  if (prefill + decode + both == 0) {
    query.deployments = plan::DeploymentsOf(flags.max_workers);
    query.stop_at_cheapest = true;
  } else if (both > 0 || (prefill > 0 && decode > 0)) {
    query.deployments = {flags.deployment};
  } else {
    return UsageError(absl::InvalidArgumentError(
        "no request could be served: expected --prefill with --decode or --both, or --both alone"));
  }
  const auto interrupted = [&console] { return console.interrupt->triggered(); };
  BATON_ASSIGN_OR_RETURN(const std::vector<plan::PlanRow> rows, plan::MakePlan(query, interrupted));
  *console.out << (flags.json ? absl::StrCat(ToJson(query, rows), "\n") : ToTable(query, rows)) << std::flush;
  return absl::OkStatus();
}

void AddLoadFlags(CLI::App& command, const std::shared_ptr<PlanFlags>& flags) {
  plan::Load& load = flags->query.load;
  AddWholeNumber(command, "--prompt-tokens", &load.workload.prompt_tokens, "tokens per prompt", 1, 1 << 20);
  AddWholeNumber(command, "--output-tokens", &load.workload.output_tokens, "tokens per answer", 1, 1 << 20);
  CLI::Option* const trace = command.add_option(
      "--trace", flags->trace, "file with recorded requests, whose lengths are simulated: see bench serve");
  for (const char* const name : {"--prompt-tokens", "--output-tokens"}) trace->excludes(command.get_option(name));
  AddNumber(command, "--trace-scale", &flags->replay.length_scale, "factor for the trace's numbers of tokens", 1e-6,
            1e3)
      ->needs(trace);
  AddChoice<TooLong>(command, "--too-long", &flags->too_long,
                     "what to do with a trace's requests that are longer than the model's context: they miss their "
                     "objectives, or are shortened or removed (default: send)",
                     {{"send", TooLong::kSend}, {"cut", TooLong::kCut}, {"drop", TooLong::kDrop}})
      ->needs(trace);
  AddChoice<ArrivalProcess>(command, "--arrivals", &load.workload.arrivals, "gaps between requests (default: poisson)",
                            {{"poisson", ArrivalProcess::kPoisson},
                             {"gamma", ArrivalProcess::kGamma},
                             {"constant", ArrivalProcess::kConstant}});
  AddNumber(command, "--burstiness", &load.workload.burstiness,
            "with --arrivals gamma: the shape; 1 is poisson, less comes in bursts, more is more even", 1e-3, 1e6);
  AddWholeNumber(command, "--seed", &load.workload.seed, "seed of the arrivals", 0, UINT64_MAX);
  AddNumber(command, "--seconds", &load.seconds, "how long requests arrive in each simulation, 300 requests at least",
            1, 1e6);
}

void AddDeploymentFlags(CLI::App& command, const std::shared_ptr<PlanFlags>& flags) {
  plan::PlanQuery& query = flags->query;
  CLI::Option* const most =
      AddWholeNumber(command, "--max-workers", &flags->max_workers,
                     "compare the deployments of up to this many workers; with --rate, in the order of their costs "
                     "until one carries the rate",
                     1, kMostWorkers);
  const auto add_count = [&](const char* name, int* count, const char* help) {
    AddWholeNumber(command, name, count, help, 0, kMostWorkers)->excludes(most);
  };
  add_count("--prefill", &flags->deployment.prefill, "prefill workers");
  add_count("--decode", &flags->deployment.decode, "decode workers");
  add_count("--both", &flags->deployment.both, "workers of role both");
  AddNumber(command, "--prefill-cost", &query.prefill_cost, "cost of a prefill worker", 1e-6, 1e9);
  AddNumber(command, "--decode-cost", &query.decode_cost, "cost of a decode worker and of a worker of role both", 1e-6,
            1e9);
  AddFlag(
      command, "--network", "NUMBER,...",
      "GB/s that each worker sends and receives; with several numbers, deployments are compared on each",
      [&query](const std::string& text) {
        query.networks.clear();
        for (const absl::string_view part : absl::StrSplit(text, ',')) {
          BATON_ASSIGN_OR_RETURN(const double speed, ParseNumber(std::string(part), 1e-6, 1e6));
          query.networks.push_back(speed * kGiga);
        }
        return absl::OkStatus();
      },
      "10");
  AddNumber(command, "--kv-memory", &flags->kv_gibibytes, "GiB of KV pages of each worker", 1e-6, 1e6);
  AddWholeNumber(command, "--token-budget", &flags->schedule.token_budget, "as the workers' option", 1, 1 << 20);
  AddWholeNumber(command, "--max-sequences", &flags->schedule.max_sequences, "as the workers' option", 1, 1 << 16);
}

}  // namespace

Command PlanCommand(CLI::App& command, const Console& console) {
  const auto flags = std::make_shared<PlanFlags>();
  flags->query.networks = {10 * kGiga};
  flags->query.threads = UsableCpus();
  command.footer(
      "A simulation places requests and plans steps as routers and workers do. Steps take the times of the profile.\n"
      "Goodput is the highest rate at which --share of the requests meet both objectives. Prefix caches and failures\n"
      "are not simulated.");
  command.add_option("--profile", flags->profile, "file of `baton bench engine --profile`")->required();
  command.add_option("--decode-profile", flags->decode_profile,
                     "the same for decode workers and workers of role both (default: --profile)");
  AddFlag(command, "--slo", "TIMES", "objectives that the router knows, such as ttft=1.3s,tpot=22ms",
          [flags](const std::string& text) {
            const absl::StatusOr<Slo> slo = ParseSlo(text);
            if (!slo.ok()) return slo.status();
            if (slo->ttft == absl::InfiniteDuration() || slo->tpot == absl::InfiniteDuration())
              return absl::InvalidArgumentError("expected both times, such as ttft=1.3s,tpot=22ms");
            flags->slo = *slo;
            return absl::OkStatus();
          })
      ->required();
  AddNumber(command, "--share", &flags->query.share, "share of the requests that must meet both objectives", 0.01, 1);
  AddFlag(command, "--rate", "NUMBER", "requests per second to carry: find the cheapest deployment, or report on one",
          [flags](const std::string& text) {
            BATON_ASSIGN_OR_RETURN(flags->query.rate, ParseNumber(text, 1e-3, 1e6));
            return absl::OkStatus();
          });
  AddLoadFlags(command, flags);
  AddDeploymentFlags(command, flags);
  AddWholeNumber(command, "--threads", &flags->query.threads, "simulations at once", 1, 1024);
  command.add_flag("--json", flags->json, "print one line of JSON");
  return [flags, &console] { return RunPlan(*flags, console); };
}

}  // namespace baton
