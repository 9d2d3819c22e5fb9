// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_format.h"
#include "cli/commands/commands.h"
#include "cli/console/interrupt.h"
#include "cli/flags/engine_flags.h"
#include "cli/flags/flags.h"
#include "cli/tools/measure_perplexity.h"
#include "common/status_macros.h"
#include "engine/formats/file.h"

namespace baton {
namespace {

constexpr size_t kMaxCorpusBytes = size_t{256} << 20;

struct PerplexityFlags {
  PerplexityOptions options;
  std::string text;
  bool json = false;
};

absl::Status RunPerplexity(const PerplexityFlags& flags, const Console& console) {
  BATON_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(flags.text, kMaxCorpusBytes));
  const auto interrupted = [&console] { return console.interrupt->triggered(); };
  BATON_ASSIGN_OR_RETURN(const Perplexity measured, MeasurePerplexity(flags.options, text, interrupted));
  if (flags.json) {
    const nlohmann::ordered_json json = {
        {"model", flags.options.model.string()}, {"numerics_id", measured.numerics_id},
        {"perplexity", measured.perplexity},     {"scored_tokens", measured.scored_tokens},
        {"weight_bytes", measured.weight_bytes}, {"kv_bytes_per_token", measured.kv_bytes_per_token}};
    *console.out << json.dump() << std::endl;
  } else {
    *console.out
        << absl::StrFormat(
               "perplexity %.4f over %d scored tokens in %d chunks; %.2f MB of weights, %d bytes of KV per token\n",
               measured.perplexity, measured.scored_tokens, measured.chunks,
               static_cast<double>(measured.weight_bytes) / 1e6, measured.kv_bytes_per_token)
        << std::flush;
  }
  return absl::OkStatus();
}

}  // namespace

Command PerplexityCommand(CLI::App& command, const Console& console) {
  const auto flags = std::make_shared<PerplexityFlags>();
  PerplexityOptions& options = flags->options;
  command.footer(
      "The text is cut into chunks of equal length, and each chunk runs alone. A shorter rest is ignored.\n"
      "The second half of each chunk is scored, as by llama.cpp's tool.");
  command.add_option("--model", options.model, "model, in a form that workers take")->required();
  command.add_option("--text", flags->text, "file with the text")->required();
  AddWholeNumber(command, "--chunk-tokens", &options.chunk_tokens, "length of a chunk", 3, 1 << 20);
  AddEngineFlags(command, console, &options.engine);
  command.add_flag("--json", flags->json, "print one line of JSON");
  return [flags, &console] { return RunPerplexity(*flags, console); };
}

}  // namespace baton
