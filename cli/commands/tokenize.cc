// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/flags/flags.h"
#include "cli/flags/generation_flags.h"
#include "cli/report/token_report.h"
#include "cli/tools/inspect_model.h"
#include "common/status_macros.h"
#include "engine/formats/file.h"

namespace baton {
namespace {

constexpr size_t kMaxTextBytes = size_t{256} << 20;

struct TokenizeFlags {
  std::string model;
  std::optional<std::string> text;
  std::string file;
  std::vector<int32_t> token_ids;
  bool special_tokens = true;
  bool json = false;
};

absl::StatusOr<std::string> TextOf(const TokenizeFlags& flags) {
  std::string text = flags.text.value_or("");
  if (!flags.text) {
    BATON_ASSIGN_OR_RETURN(text, ReadTextFile(flags.file, kMaxTextBytes));
  }
  BATON_RETURN_IF_ERROR(CheckUtf8(flags.text ? "--text" : "--file", text));
  return text;
}

absl::Status Detokenize(const TokenizeFlags& flags, const Console& console, const Tokenizer& tokenizer) {
  BATON_ASSIGN_OR_RETURN(const std::string text, tokenizer.Decode(flags.token_ids, !flags.special_tokens));
  if (flags.json) {
    PrintTokensAsJson(console, tokenizer, text, flags.token_ids);
  } else {
    *console.out << text << std::endl;
  }
  return absl::OkStatus();
}

absl::Status Tokenize(const TokenizeFlags& flags, const Console& console) {
  BATON_ASSIGN_OR_RETURN(const auto assets, LoadModelAssets(flags.model));
  if (!flags.token_ids.empty()) return Detokenize(flags, console, *assets->tokenizer);
  BATON_ASSIGN_OR_RETURN(const std::string text, TextOf(flags));
  BATON_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, assets->tokenizer->Encode(text, flags.special_tokens));
  if (flags.json) {
    PrintTokensAsJson(console, *assets->tokenizer, text, ids);
  } else {
    PrintTokens(console, *assets->tokenizer, ids);
  }
  return absl::OkStatus();
}

}  // namespace

Command TokenizeCommand(CLI::App& command, const Console& console) {
  const auto flags = std::make_shared<TokenizeFlags>();
  command.footer("The tokens are those that a worker with this model gets for a prompt.");
  command.add_option("--model", flags->model, "model, in a form that workers take; the weights are not read")
      ->required();
  CLI::Option_group& input = *command.add_option_group("Input", "one of these");
  input.add_option("--text", flags->text, "text to tokenize; special tokens are recognized");
  input.add_option("--file", flags->file, "file with the text");
  AddTokenIds(input, "--token-ids", &flags->token_ids, "token ids whose text to show, comma-separated");
  input.require_option(1);
  command.add_flag(
      "--special-tokens,!--no-special-tokens", flags->special_tokens,
      "add the special tokens that the tokenizer puts around a text, or show those among the ids (the default)");
  command.add_flag("--json", flags->json, "print one line of JSON");
  return [flags, &console] { return Tokenize(*flags, console); };
}

}  // namespace baton
