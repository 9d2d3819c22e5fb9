// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/client.h"
#include "cli/commands/commands.h"
#include "cli/console/input.h"
#include "cli/console/interrupt.h"
#include "cli/console/line_editor.h"
#include "cli/flags/flags.h"
#include "cli/flags/generation_flags.h"
#include "cli/report/answer_text.h"
#include "common/status_macros.h"
#include "text/utf8.h"

namespace baton {
namespace {

struct ChatFlags {
  std::string target = std::string(kDefaultTarget);
  std::string system;
  GenerationFlags generation;
  bool summary = false;
};

void Append(v1::ChatInput& chat, const char* role, const std::string& content) {
  v1::ChatMessage& message = *chat.add_messages();
  message.set_role(role);
  message.set_content(content);
}

// A conversation. `request` holds the history: each turn sends the whole history and extends it.
class Dialogue {
 public:
  Dialogue(const ChatFlags& flags, const Console& console, Client& client, v1::GenerateRequest request,
           absl::Duration timeout)
      : flags_(flags), console_(console), client_(client), request_(std::move(request)), timeout_(timeout) {}

  // Runs one turn. The history keeps the part of a cancelled answer that arrived. A turn without any answer leaves the
  // history as it was.
  absl::Status Ask(const std::string& question) {
    v1::ChatInput& chat = *request_.mutable_chat();
    Append(chat, "user", question);
    std::string answer;
    const absl::StatusOr<v1::Finish> finish = client_.Generate(request_, timeout_, *console_.interrupt,
                                                               [this, &answer](const v1::GenerateResponse& response) {
                                                                 answer += response.chunk().text();
                                                                 *console_.out << response.chunk().text() << std::flush;
                                                                 return console_.out->good();
                                                               });
    *console_.out << std::endl;
    if (answer.empty() && !finish.ok()) {
      chat.mutable_messages()->RemoveLast();
    } else {
      Append(chat, "assistant", answer);
    }
    if (finish.ok() && flags_.summary) *console_.err << SummaryLine(*finish) << std::endl;
    return finish.status();
  }

 private:
  const ChatFlags& flags_;
  const Console& console_;
  Client& client_;
  v1::GenerateRequest request_;
  const absl::Duration timeout_;
};

constexpr char kPrompt[] = "> ";

// Answers each line until the input ends.
absl::Status Talk(Dialogue& dialogue, const Console& console) {
  const std::unique_ptr<LineSource> editor =
      console.screen_fd < 0 ? nullptr
                            : LineEditor::Create(console.input_fd, console.screen_fd, kPrompt, *console.interrupt);
  LineReader reader(console.input_fd, *console.interrupt);
  LineSource& lines = editor != nullptr ? *editor : reader;
  const bool prompts = editor == nullptr && console.input_is_terminal;
  std::string question;
  while (true) {
    if (prompts) *console.err << kPrompt << std::flush;
    switch (lines.Next(&question)) {
      case LineSource::Result::kEnd:
        if (prompts) *console.err << std::endl;
        return absl::OkStatus();
      case LineSource::Result::kInterrupted:
        if (editor != nullptr) {
          // Ctrl-C cleared the line.
          console.interrupt->Reset();
          continue;
        }
        *console.err << std::endl;
        return absl::CancelledError("interrupted");
      case LineSource::Result::kTooLong:
        return absl::InvalidArgumentError(absl::StrCat("a line has more than ", LineReader::kMaxLineBytes, " bytes"));
      case LineSource::Result::kLine: break;
    }
    if (question.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (ValidUtf8Prefix(question) < question.size()) {
      *console.err << "baton chat: the line is not valid UTF-8" << std::endl;
      continue;
    }
    absl::Status status = dialogue.Ask(question);
    BATON_RETURN_IF_ERROR(console.out->status());
    if (status.ok()) continue;
    if (console.interrupt->triggered()) {
      // Ctrl-C ended the answer, not the chat.
      console.interrupt->Reset();
    } else if (console.input_is_terminal) {
      Report(console, "baton chat", status);
    } else {
      return status;
    }
  }
}

absl::Status RunChat(const ChatFlags& flags, const Console& console) {
  v1::GenerateRequest request;
  BATON_RETURN_IF_ERROR(UsageError(flags.generation.Fill(request)));
  BATON_RETURN_IF_ERROR(UsageError(CheckUtf8("--system", flags.system)));
  if (!flags.system.empty()) Append(*request.mutable_chat(), "system", flags.system);
  BATON_ASSIGN_OR_RETURN(const absl::Duration timeout, UsageError(flags.generation.timeout()));

  BATON_ASSIGN_OR_RETURN(const auto client, Client::Connect(flags.target, kConnectTimeout, *console.interrupt));
  if (console.input_is_terminal)
    *console.err << "Ctrl-C stops an answer or clears the line, Ctrl-D ends the chat." << std::endl;
  Dialogue dialogue(flags, console, *client, std::move(request), timeout);
  return Talk(dialogue, console);
}

}  // namespace

Command ChatCommand(CLI::App& command, const Console& console) {
  const auto flags = std::make_shared<ChatFlags>();
  AddTarget(command, &flags->target);
  command.add_option("--system", flags->system, "system message before the conversation");
  flags->generation.AddTo(command);
  command.add_flag("--summary", flags->summary,
                   "after each answer, print one line on stderr: latencies, KV bytes, workers");
  command.footer(
      "On a terminal, lines are edited, and arrow up and down show earlier lines.\n"
      "Ctrl-C stops an answer or clears the line. Ctrl-D ends the chat.");
  return [flags, &console] { return RunChat(*flags, console); };
}

}  // namespace baton
