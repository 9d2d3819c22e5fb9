#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/generation_flags.h"
#include "cli/interrupt.h"
#include "cli/load_generator.h"
#include "cli/load_report.h"
#include "common/status_macros.h"

namespace baton {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(5);

struct BenchFlags {
  std::string target = std::string(kDefaultTarget);
  Workload workload;
  LoadOptions load;
  std::string timeout = "5m";
  bool json = false;
};

// The model to load: the one named, or the only one served.
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

int RunBenchServe(BenchFlags& flags, const Console& console) {
  const absl::StatusOr<absl::Duration> timeout = ParseTimeout("--timeout", flags.timeout);
  if (!timeout.ok()) return Report(console, "bench serve", timeout.status(), kExitUsage);
  flags.load.request_timeout = *timeout;
  const auto client = Client::Connect(flags.target, kConnectTimeout, *console.interrupt);
  if (!client.ok()) return Report(console, "bench serve", client.status());
  const absl::StatusOr<v1::ModelInfo> model = FindModel(**client, flags.workload.model);
  if (!model.ok()) return Report(console, "bench serve", model.status());
  flags.workload.model = model->name();
  flags.workload.vocab_size = model->vocab_size();

  const LoadReport report = MakeReport(GenerateLoad(**client, flags.workload, flags.load, *console.interrupt));
  *console.out << (flags.json ? absl::StrCat(ToJson(flags.target, flags.workload, report), "\n")
                              : ToTable(flags.workload, report))
               << std::flush;
  if (console.interrupt->triggered()) return kExitInterrupted;
  return report.completed > 0 ? kExitOk : kExitError;
}

}  // namespace

void AddBenchCommand(CLI::App& app, const Console& console, Command* chosen) {
  CLI::App& bench = *app.add_subcommand("bench", "Measures a running service.");
  bench.require_subcommand(1);
  const auto flags = std::make_shared<BenchFlags>();
  CLI::App& command = *bench.add_subcommand(
      "serve", "Open-loop load with Poisson arrivals; percentiles of TTFT, TPOT, ITL and end-to-end time.");
  command.add_option("--target", flags->target, "HOST:PORT of the router")->capture_default_str();
  command.add_option("--model", flags->workload.model, "model name (default: the only one served)");
  command.add_option("--rate", flags->workload.rate, "requests per second")
      ->check(CLI::Range(1e-3, 1e5))
      ->capture_default_str();
  command.add_option("--requests", flags->workload.requests, "how many to send")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command.add_option("--prompt-tokens", flags->workload.prompt_tokens, "random token ids per prompt")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--output-tokens", flags->workload.output_tokens, "tokens per answer; end tokens do not end it")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--seed", flags->workload.seed, "of arrivals and prompts")->capture_default_str();
  command.add_option("--max-in-flight", flags->load.max_in_flight, "requests beyond this are counted as NOT_SENT")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command.add_option("--timeout", flags->timeout, "per request")->capture_default_str();
  command.add_flag("--json", flags->json, "one JSON line instead of the table");
  command.callback(
      [flags, &console, chosen] { *chosen = [flags, &console] { return RunBenchServe(*flags, console); }; });
}

}  // namespace baton
