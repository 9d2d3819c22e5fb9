// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/flags/conversation_flags.h"
#include "cli/report/token_report.h"
#include "cli/tools/inspect_model.h"
#include "common/status_macros.h"

namespace baton {
namespace {

struct RenderFlags {
  std::string model;
  ConversationFlags conversation;
  bool tokens = false;
  bool json = false;
};

absl::Status Render(RenderFlags& flags, const Console& console) {
  BATON_RETURN_IF_ERROR(flags.conversation.TakeInputs(console));
  BATON_ASSIGN_OR_RETURN(const Conversation conversation, flags.conversation.Read());
  BATON_ASSIGN_OR_RETURN(const auto assets, LoadModelAssets(flags.model));
  BATON_ASSIGN_OR_RETURN(const std::string prompt, assets->RenderChat(conversation, "chat"));
  if (!flags.tokens && !flags.json) {
    *console.out << prompt << std::flush;
    return absl::OkStatus();
  }
  BATON_ASSIGN_OR_RETURN(const std::vector<TokenId> ids,
                         assets->tokenizer->Encode(prompt, /*add_special_tokens=*/false));
  if (flags.json) {
    PrintTokensAsJson(console, *assets->tokenizer, prompt, ids);
  } else {
    PrintTokens(console, *assets->tokenizer, ids);
  }
  return absl::OkStatus();
}

}  // namespace

Command RenderCommand(CLI::App& command, const Console& console) {
  const auto flags = std::make_shared<RenderFlags>();
  command.footer("The prompt is the one that the router makes for this model. No line feed is added at the end.");
  command.add_option("--model", flags->model, "model, in a form that workers take; the weights are not read")
      ->required();
  CLI::Option_group& input = *command.add_option_group("Input", "one of these");
  flags->conversation.AddTo(command, input);
  input.require_option(1);
  command.add_flag("--tokens", flags->tokens, "show the prompt's tokens instead");
  command.add_flag("--json", flags->json, "print one line of JSON: the prompt and its tokens");
  return [flags, &console] { return Render(*flags, console); };
}

}  // namespace baton
