// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "cli/commands/commands.h"
#include "cli/flags/flags.h"
#include "cli/tools/make_model.h"
#include "common/cpus.h"
#include "common/status_macros.h"
#include "common/steady_time.h"

namespace baton {
namespace {

struct MakeFlags {
  MakeModelOptions options;
  std::string out;
};

absl::Status RunModelsMake(const MakeFlags& flags, const Console& console) {
  const Stopwatch watch;
  BATON_ASSIGN_OR_RETURN(const MadeModel made, MakeModel(flags.options, flags.out));
  *console.out << absl::StrFormat("%s: %d parameters, %.2f GB, %.1f s", flags.out, made.parameters,
                                  static_cast<double>(made.bytes) / 1e9, watch.seconds())
               << std::endl;
  return absl::OkStatus();
}

std::string PresetNames(const char* separator) {
  return absl::StrJoin(ModelPresets(), separator,
                       [](std::string* out, const ModelPreset& preset) { out->append(preset.name); });
}

absl::Status SetPreset(const std::string& text, ModelPreset* preset) {
  if (const ModelPreset* found = FindModelPreset(text); found != nullptr) {
    *preset = *found;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("expected ", PresetNames(", ")));
}

}  // namespace

Command ModelsMakeCommand(CLI::App& command, const Console& console) {
  command.footer(
      "For benchmarks: the speed of a model does not depend on the values of its weights.\n"
      "The same preset, seed and dtype make the same model in either format, with any number of threads.");
  const auto flags = std::make_shared<MakeFlags>();
  MakeModelOptions& options = flags->options;
  options.threads = UsableCpus();
  AddFlag(command, "--preset", PresetNames("|"), "shape of the model", [&options](const std::string& text) {
    return SetPreset(text, &options.preset);
  })->required();
  command.add_option("--out", flags->out, "the GGUF file or the folder to write; must not exist")->required();
  AddChoice(command, "--dtype", &options.type, "type of the matrices; q8_0 and q4_0 only in GGUF",
            Choices<TensorType>{{"f32", TensorType::kF32},
                                {"f16", TensorType::kF16},
                                {"bf16", TensorType::kBF16},
                                {"q8_0", TensorType::kQ8_0},
                                {"q4_0", TensorType::kQ4_0}})
      ->default_str("bf16");
  AddChoice(command, "--format", &options.format, "form of the output; safetensors: a Hugging Face folder",
            Choices<ModelFormat>{{"gguf", ModelFormat::kGguf}, {"safetensors", ModelFormat::kSafetensors}})
      ->default_str("gguf");
  AddWholeNumber(command, "--seed", &options.seed, "seed of the weights", 0, UINT64_MAX);
  AddWholeNumber(command, "--threads", &options.threads,
                 "threads that make weights (default: all CPUs that this process may use)", 1, 1024);
  return [flags, &console] { return RunModelsMake(*flags, console); };
}

}  // namespace baton
