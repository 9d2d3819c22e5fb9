// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "cli/commands/commands.h"
#include "cli/flags/flags.h"
#include "cli/tools/make_model.h"
#include "common/cpus.h"
#include "common/steady_time.h"
#include "common/strings.h"

namespace baton {
namespace {

struct MakeFlags {
  MakeModelOptions options;
  std::string out;
};

int RunModelsMake(const MakeFlags& flags, const Console& console) {
  const Stopwatch watch;
  const absl::StatusOr<MadeModel> made = MakeModel(flags.options, flags.out);
  if (!made.ok()) return Report(console, "models make", made.status());
  *console.out << absl::StrFormat("%s: %d parameters, %.2f GB, %.1f s", flags.out, made->parameters,
                                  static_cast<double>(made->bytes) / 1e9, watch.seconds())
               << std::endl;
  return kExitOk;
}

absl::Status SetPreset(const std::string& text, ModelPreset* preset) {
  if (const ModelPreset* found = FindModelPreset(text); found != nullptr) {
    *preset = *found;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "expected ",
      absl::StrJoin(ModelPresets(), ", ", [](std::string* out, const ModelPreset& p) { out->append(p.name); })));
}

absl::Status SetType(const std::string& text, TensorType* type) {
  for (const TensorType known :
       {TensorType::kF32, TensorType::kF16, TensorType::kBF16, TensorType::kQ8_0, TensorType::kQ4_0}) {
    if (absl::AsciiStrToLower(ToAbsl(InfoOf(known).name)) != text) continue;
    *type = known;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("expected f32, f16, bf16, q8_0 or q4_0");
}

absl::Status SetFormat(const std::string& text, ModelFormat* format) {
  if (text != "gguf" && text != "safetensors") return absl::InvalidArgumentError("expected gguf or safetensors");
  *format = text == "gguf" ? ModelFormat::kGguf : ModelFormat::kSafetensors;
  return absl::OkStatus();
}

}  // namespace

void AddModelsMakeCommand(CLI::App& models, const Console& console, Command* chosen) {
  CLI::App& command = *models.add_subcommand("make", "Makes a model of random weights with a usable tokenizer.");
  command.footer(
      "For benchmarks: the speed of a model does not depend on the values of its weights.\n"
      "The same preset, seed and dtype make the same model in either format, with any number of threads.");
  const auto flags = std::make_shared<MakeFlags>();
  MakeModelOptions& options = flags->options;
  options.threads = UsableCpus();
  AddFlag(command, "--preset", "NAME", "shape of the model: 110m, tinyllama-1.1b, llama-3.2-1b or llama-3-8b",
          [&options](const std::string& text) { return SetPreset(text, &options.preset); })
      ->required();
  command.add_option("--out", flags->out, "the GGUF file or the folder to write; must not exist")->required();
  AddFlag(command, "--dtype", "NAME", "type of the matrices: f32, f16, bf16; in GGUF also q8_0, q4_0",
          [&options](const std::string& text) { return SetType(text, &options.type); })
      ->default_str("bf16");
  AddFlag(command, "--format", "NAME", "form of the output: gguf, or safetensors for a Hugging Face folder",
          [&options](const std::string& text) { return SetFormat(text, &options.format); })
      ->default_str("gguf");
  AddWholeNumber(command, "--seed", &options.seed, "seed of the weights", 0, UINT64_MAX)
      ->default_str(absl::StrCat(options.seed));
  AddWholeNumber(command, "--threads", &options.threads,
                 "threads that make weights (default: all CPUs that this process may use)", 1, 1024)
      ->default_str(absl::StrCat(options.threads));
  command.callback(
      [flags, &console, chosen] { *chosen = [flags, &console] { return RunModelsMake(*flags, console); }; });
}

}  // namespace baton
