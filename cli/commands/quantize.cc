// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "cli/commands/commands.h"
#include "cli/flags/flags.h"
#include "cli/tools/quantize_model.h"
#include "common/cpus.h"
#include "common/status_macros.h"
#include "common/steady_time.h"

namespace baton {
namespace {

struct QuantizeFlags {
  QuantizeOptions options;
  std::string in;
  std::string out;
};

absl::Status RunQuantize(const QuantizeFlags& flags, const Console& console) {
  const Stopwatch watch;
  BATON_ASSIGN_OR_RETURN(const QuantizedModel made, QuantizeModel(flags.in, flags.out, flags.options));
  *console.out << absl::StrFormat("%s: %d matrices, %.2f GB of weights in %.2f GB, %.1f s", flags.out, made.matrices,
                                  static_cast<double>(made.bytes_in) / 1e9, static_cast<double>(made.bytes) / 1e9,
                                  watch.seconds())
               << std::endl;
  return absl::OkStatus();
}

}  // namespace

Command QuantizeCommand(CLI::App& command, const Console& console) {
  command.footer("Norms stay in f32. The length of each row must be a multiple of 32.");
  const auto flags = std::make_shared<QuantizeFlags>();
  QuantizeOptions& options = flags->options;
  options.threads = UsableCpus();
  command.add_option("IN", flags->in, "the model: a folder in Hugging Face form or a GGUF file")->required();
  command.add_option("OUT", flags->out, "the GGUF file to write; must not exist")->required();
  const Choices<TensorType> types = {{"q8_0", TensorType::kQ8_0}, {"q4_0", TensorType::kQ4_0}};
  AddChoice(command, "--to", &options.type, "type of the matrices", types)->required();
  AddChoice(command, "--head", &options.head_type, "type of the matrix that gives the logits (default: as --to)",
            types);
  AddWholeNumber(command, "--threads", &options.threads,
                 "threads that quantize (default: all CPUs that this process may use)", 1, 1024);
  return [flags, &console] { return RunQuantize(*flags, console); };
}

}  // namespace baton
