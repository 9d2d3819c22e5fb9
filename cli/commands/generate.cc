// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/client.h"
#include "cli/commands/commands.h"
#include "cli/console/input.h"
#include "cli/console/interrupt.h"
#include "cli/flags/conversation_flags.h"
#include "cli/flags/flags.h"
#include "cli/flags/generation_flags.h"
#include "cli/report/answer_text.h"
#include "common/status_macros.h"

namespace baton {
namespace {

struct GenerateFlags {
  std::string target = std::string(kDefaultTarget);
  std::optional<std::string> prompt;
  ConversationFlags conversation;
  std::vector<int32_t> token_ids;
  GenerationFlags generation;
  bool json = false;
  bool summary = false;
};

absl::StatusOr<v1::GenerateRequest> BuildRequest(const GenerateFlags& flags) {
  v1::GenerateRequest request;
  BATON_RETURN_IF_ERROR(flags.generation.Fill(request));
  if (!flags.conversation.given()) BATON_RETURN_IF_ERROR(flags.conversation.CheckNone());
  if (flags.prompt.has_value()) {
    BATON_RETURN_IF_ERROR(CheckUtf8("--prompt", *flags.prompt));
    request.set_prompt(*flags.prompt);
  } else if (flags.conversation.given()) {
    BATON_ASSIGN_OR_RETURN(const Conversation conversation, flags.conversation.Read());
    ToProto(conversation, *request.mutable_chat());
  } else {
    request.mutable_token_ids()->mutable_ids()->Add(flags.token_ids.begin(), flags.token_ids.end());
  }
  return request;
}

// Writes an answer as it arrives: JSON lines, or its text.
class AnswerWriter {
 public:
  AnswerWriter(const Console& console, bool json) : out_(*console.out), json_(json) {}

  // Returns false when the output can no longer be written, so that the rest need not be generated.
  bool Write(const v1::GenerateResponse& response) {
    if (json_) {
      out_ << ToJsonLine(response) << '\n';
    } else {
      const std::string& text = response.chunk().text();
      if (!text.empty()) at_line_start_ = text.back() == '\n';
      out_ << text;
      logprobs_ += LogprobLines(response.chunk());
    }
    out_.flush();
    return out_.good();
  }

  // Ends the last line of the text.
  void End() {
    if (!at_line_start_) out_ << std::endl;
  }

  const std::string& logprobs() const { return logprobs_; }

 private:
  OutputStream& out_;
  const bool json_;
  bool at_line_start_ = true;
  std::string logprobs_;
};

absl::Status RunGenerate(GenerateFlags& flags, const Console& console) {
  BATON_RETURN_IF_ERROR(TakeInput(console, "--prompt", &flags.prompt));
  BATON_RETURN_IF_ERROR(flags.conversation.TakeInputs(console));
  BATON_ASSIGN_OR_RETURN(const v1::GenerateRequest request, UsageError(BuildRequest(flags)));
  BATON_ASSIGN_OR_RETURN(const absl::Duration timeout, UsageError(flags.generation.timeout()));

  BATON_ASSIGN_OR_RETURN(const auto client, Client::Connect(flags.target, kConnectTimeout, *console.interrupt));
  AnswerWriter writer(console, flags.json);
  const absl::StatusOr<v1::Finish> finish =
      client->Generate(request, timeout, *console.interrupt,
                       [&writer](const v1::GenerateResponse& response) { return writer.Write(response); });
  writer.End();
  *console.err << writer.logprobs();
  if (finish.ok() && flags.summary) *console.err << SummaryLine(*finish) << std::endl;
  return finish.status();
}

}  // namespace

Command GenerateCommand(CLI::App& command, const Console& console) {
  const auto flags = std::make_shared<GenerateFlags>();
  AddTarget(command, &flags->target);
  CLI::Option_group& input = *command.add_option_group("Input", "one of these");
  input.add_option("--prompt", flags->prompt, "text to continue; - reads the whole standard input");
  flags->conversation.AddTo(command, input);
  AddTokenIds(input, "--token-ids", &flags->token_ids, "token ids to continue, comma-separated");
  input.require_option(1);
  flags->generation.AddTo(command);
  command.add_flag("--json", flags->json, "print one JSON line per message of the stream instead of the text");
  command.add_flag("--summary", flags->summary, "afterwards print one line on stderr: latencies, KV bytes, workers");
  return [flags, &console] { return RunGenerate(*flags, console); };
}

}  // namespace baton
