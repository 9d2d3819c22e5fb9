// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/commands/commands.h"
#include "cli/report/model_report.h"
#include "cli/tools/inspect_model.h"

namespace baton {
namespace {

struct InspectFlags {
  std::string path;
  bool json = false;
};

int RunModelsInspect(const InspectFlags& flags, const Console& console) {
  const absl::StatusOr<ModelReport> report = InspectModel(flags.path);
  if (!report.ok()) return Report(console, "models inspect", report.status());
  *console.out << (flags.json ? absl::StrCat(ToJson(flags.path, *report), "\n") : ToText(flags.path, *report))
               << std::flush;
  return kExitOk;
}

}  // namespace

void AddModelsInspectCommand(CLI::App& models, const Console& console, Command* chosen) {
  CLI::App& command = *models.add_subcommand(
      "inspect", "Describes a model, and how many tokens its KV cache holds in how much memory.");
  command.footer(
      "The memory holds the weights, as the file has them, and the KV cache. A worker needs some more to compute.");
  const auto flags = std::make_shared<InspectFlags>();
  command.add_option("PATH", flags->path, "the model: a folder in Hugging Face form or a GGUF file")->required();
  command.add_flag("--json", flags->json, "print one JSON line instead of the text");
  command.callback(
      [flags, &console, chosen] { *chosen = [flags, &console] { return RunModelsInspect(*flags, console); }; });
}

}  // namespace baton
