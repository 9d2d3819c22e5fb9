// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/commands/commands.h"
#include "cli/report/model_report.h"
#include "cli/tools/inspect_model.h"
#include "common/status_macros.h"

namespace baton {
namespace {

struct InspectFlags {
  std::string path;
  bool json = false;
};

absl::Status RunModelsInspect(const InspectFlags& flags, const Console& console) {
  BATON_ASSIGN_OR_RETURN(const ModelReport report, InspectModel(flags.path));
  *console.out << (flags.json ? absl::StrCat(ToJson(flags.path, report), "\n") : ToText(flags.path, report))
               << std::flush;
  return absl::OkStatus();
}

}  // namespace

Command ModelsInspectCommand(CLI::App& command, const Console& console) {
  command.footer(
      "The memory holds the weights, as the file has them, and the KV cache. A worker needs some more to compute.");
  const auto flags = std::make_shared<InspectFlags>();
  command.add_option("PATH", flags->path, "the model: a folder in Hugging Face form or a GGUF file")->required();
  command.add_flag("--json", flags->json, "print one JSON line instead of the text");
  return [flags, &console] { return RunModelsInspect(*flags, console); };
}

}  // namespace baton
