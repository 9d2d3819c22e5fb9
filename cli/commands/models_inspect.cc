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
      "inspect", "What is in a model, and how many tokens its KV cache holds in how much memory.");
  command.footer(
      "The memory is that of the weights, as the file has them, and the KV cache; a worker takes some more to compute "
      "in.");
  const auto flags = std::make_shared<InspectFlags>();
  command.add_option("PATH", flags->path, "the model's folder, in Hugging Face form, or its GGUF file")->required();
  command.add_flag("--json", flags->json, "one JSON line instead of the text");
  command.callback(
      [flags, &console, chosen] { *chosen = [flags, &console] { return RunModelsInspect(*flags, console); }; });
}

}  // namespace baton
