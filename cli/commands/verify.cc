// SPDX-License-Identifier: Apache-2.0
#include "cli/pairs/verify.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/client.h"
#include "cli/commands/commands.h"
#include "cli/console/interrupt.h"
#include "cli/flags/flags.h"
#include "cli/flags/generation_flags.h"
#include "cli/report/verify_report.h"
#include "common/status_macros.h"

namespace baton {
namespace {

struct VerifyFlags {
  std::string target = std::string(kDefaultTarget);
  PlanOptions plan = {.max_pairs = 16};
  VerifyOptions verify;
  std::string request_timeout = "1m";
  std::string timeout = "10m";
  bool strict = false;
  bool json = false;
};

absl::Status RunVerify(VerifyFlags& flags, const Console& console) {
  BATON_ASSIGN_OR_RETURN(flags.verify.request_timeout,
                         UsageError(ParseTimeout("--request-timeout", flags.request_timeout)));
  BATON_ASSIGN_OR_RETURN(flags.verify.timeout, UsageError(ParseTimeout("--timeout", flags.timeout)));
  flags.plan.seed = flags.verify.prompts.seed;
  BATON_ASSIGN_OR_RETURN(const auto client, Client::Connect(flags.target, kConnectTimeout, *console.interrupt));
  BATON_ASSIGN_OR_RETURN(const v1::GetStatusResponse status, client->GetStatus(kCallTimeout));
  BATON_ASSIGN_OR_RETURN(const v1::ListModelsResponse models, client->ListModels(kCallTimeout));
  const std::vector<WorkerGroup> groups = MakePlan(status, models, flags.plan);
  if (groups.empty()) {
    return absl::UnavailableError(absl::StrCat(
        flags.target, " has no serving worker",
        flags.plan.model.empty() ? "" : absl::StrCat(" of model ", flags.plan.model), "; see `baton doctor`"));
  }
  const auto progress = [&console](const std::string& line) {
    if (console.err_is_terminal) *console.err << line << std::endl;
  };
  const VerifyResult result = Verify(*client, groups, flags.verify, *console.interrupt, progress);
  if (console.interrupt->triggered()) return absl::CancelledError("interrupted");
  *console.out << (flags.json ? absl::StrCat(ToJson(flags.target, result, flags.strict), "\n")
                              : ToText(result, flags.strict))
               << std::flush;
  if (Passed(result, flags.strict)) return absl::OkStatus();
  return absl::FailedPreconditionError("the workers are not proven equal, see above");
}

}  // namespace

Command VerifyCommand(CLI::App& command, const Console& console) {
  const auto flags = std::make_shared<VerifyFlags>();
  command.footer(
      "alone: each request by itself; load: all requests at once; cached: each request again with its prefix cached;\n"
      "migration: a sequence moves to another decode worker while it decodes. Tokens, texts and the bits of logprobs "
      "are\n"
      "compared among the workers of one model and numerics id.\n"
      "The exit code is 0 when every answer was the expected one. A check that cannot run, such as a migration with "
      "one\n"
      "decode worker, is reported with its reason.");
  AddTarget(command, &flags->target);
  command.add_option("--model", flags->plan.model, "model name (default: all models)");
  AddWholeNumber(command, "--max-pairs", &flags->plan.max_pairs,
                 "most pairs of workers, and most migrations, of a model and numerics id; --seed chooses", 1, 10'000);
  PromptOptions& prompts = flags->verify.prompts;
  AddWholeNumber(command, "--prompts", &prompts.prompts, "different requests", 1, 1000);
  AddWholeNumber(command, "--prompt-tokens", &prompts.prompt_tokens, "random token ids of the longest prompt", 1,
                 1 << 20);
  AddWholeNumber(command, "--output-tokens", &prompts.output_tokens,
                 "tokens per answer; an answer that ends before its sequence has migrated is asked for again, longer",
                 1, 1 << 20);
  AddWholeNumber(command, "--concurrency", &flags->verify.at_once, "requests at once under load", 1, 256);
  AddWholeNumber(command, "--seed", &prompts.seed, "seed of prompts and of the choice of pairs", 0, UINT64_MAX);
  command.add_option("--request-timeout", flags->request_timeout, "time limit of each request")->capture_default_str();
  command.add_option("--timeout", flags->timeout, "time limit of all; what is not sent by then is not proven")
      ->capture_default_str();
  command.add_flag("--strict", flags->strict, "fail also if a check could not run");
  command.add_flag("--json", flags->json, "print one JSON line instead of the tables");
  return [flags, &console] { return RunVerify(*flags, console); };
}

}  // namespace baton
