// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "cli/commands/commands.h"
#include "cli/flags/flags.h"
#include "cli/tools/quantize_model.h"
#include "common/cpus.h"
#include "common/steady_time.h"

namespace baton {
namespace {

struct QuantizeFlags {
  QuantizeOptions options;
  std::string in;
  std::string out;
};

int RunQuantize(const QuantizeFlags& flags, const Console& console) {
  const Stopwatch watch;
  const absl::StatusOr<QuantizedModel> made = QuantizeModel(flags.in, flags.out, flags.options);
  if (!made.ok()) return Report(console, "quantize", made.status());
  *console.out << absl::StrFormat("%s: %d matrices, %.2f GB of weights in %.2f GB, %.1f s", flags.out, made->matrices,
                                  static_cast<double>(made->bytes_in) / 1e9, static_cast<double>(made->bytes) / 1e9,
                                  watch.seconds())
               << std::endl;
  return kExitOk;
}

template <typename Type>
absl::Status SetBlockType(const std::string& text, Type* type) {
  if (text != "q8_0" && text != "q4_0") return absl::InvalidArgumentError("expected q8_0 or q4_0");
  *type = text == "q8_0" ? TensorType::kQ8_0 : TensorType::kQ4_0;
  return absl::OkStatus();
}

}  // namespace

void AddQuantizeCommand(CLI::App& app, const Console& console, Command* chosen) {
  CLI::App& command =
      *app.add_subcommand("quantize", "Writes a model with its matrices in blocks of 8 or 4 bits, without a router.");
  command.footer("Norms stay in f32. The length of each row must be a multiple of 32.");
  const auto flags = std::make_shared<QuantizeFlags>();
  QuantizeOptions& options = flags->options;
  options.threads = UsableCpus();
  command.add_option("IN", flags->in, "the model: a folder in Hugging Face form or a GGUF file")->required();
  command.add_option("OUT", flags->out, "the GGUF file to write; must not exist")->required();
  AddFlag(command, "--to", "NAME", "type of the matrices: q8_0 or q4_0", [&options](const std::string& text) {
    return SetBlockType(text, &options.type);
  })->required();
  AddFlag(command, "--head", "NAME", "type of the matrix that gives the logits: q8_0 or q4_0 (default: as --to)",
          [&options](const std::string& text) { return SetBlockType(text, &options.head_type); });
  AddWholeNumber(command, "--threads", &options.threads,
                 "threads that quantize (default: all CPUs that this process may use)", 1, 1024)
      ->default_str(absl::StrCat(options.threads));
  command.callback([flags, &console, chosen] { *chosen = [flags, &console] { return RunQuantize(*flags, console); }; });
}

}  // namespace baton
