// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/client.h"
#include "cli/commands/commands.h"
#include "cli/console/interrupt.h"
#include "cli/console/line_editor.h"
#include "cli/console/line_reader.h"
#include "cli/flags/flags.h"
#include "cli/flags/generation_flags.h"
#include "cli/report/answer_text.h"
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
int Talk(Dialogue& dialogue, const Console& console) {
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
        return kExitOk;
      case LineSource::Result::kInterrupted:
        if (editor != nullptr) {
          // Ctrl-C cleared the line.
          console.interrupt->Reset();
          continue;
        }
        *console.err << std::endl;
        return kExitInterrupted;
      case LineSource::Result::kTooLong:
        *console.err << "baton chat: a line has more than " << LineReader::kMaxLineBytes << " bytes" << std::endl;
        return kExitError;
      case LineSource::Result::kLine: break;
    }
    if (question.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (ValidUtf8Prefix(question) < question.size()) {
      *console.err << "baton chat: the line is not valid UTF-8" << std::endl;
      continue;
    }
    const absl::Status status = dialogue.Ask(question);
    if (!console.out->good()) return kExitError;
    if (status.ok()) continue;
    if (console.interrupt->triggered()) {
      // Ctrl-C ended the answer, not the chat.
      console.interrupt->Reset();
    } else if (const int code = Report(console, "chat", status); !console.input_is_terminal) {
      return code;
    }
  }
}

int RunChat(const ChatFlags& flags, const Console& console) {
  v1::GenerateRequest request;
  if (const absl::Status status = flags.generation.Fill(request); !status.ok()) {
    return Report(console, "chat", status, kExitUsage);
  }
  if (const absl::Status status = CheckUtf8("--system", flags.system); !status.ok()) {
    return Report(console, "chat", status, kExitUsage);
  }
  if (!flags.system.empty()) Append(*request.mutable_chat(), "system", flags.system);
  const absl::StatusOr<absl::Duration> timeout = flags.generation.timeout();
  if (!timeout.ok()) return Report(console, "chat", timeout.status(), kExitUsage);

  const auto client = Client::Connect(flags.target, kConnectTimeout, *console.interrupt);
  if (!client.ok()) return Report(console, "chat", client.status());
  if (console.input_is_terminal)
    *console.err << "Ctrl-C stops an answer or clears the line, Ctrl-D ends the chat." << std::endl;
  Dialogue dialogue(flags, console, **client, std::move(request), *timeout);
  return Talk(dialogue, console);
}

}  // namespace

void AddChatCommand(CLI::App& app, const Console& console, Command* chosen) {
  const auto flags = std::make_shared<ChatFlags>();
  CLI::App& command =
      *app.add_subcommand("chat", "Holds a conversation: one line per turn, with the history of all turns.");
  AddTarget(command, &flags->target);
  command.add_option("--system", flags->system, "system message before the conversation");
  flags->generation.AddTo(command);
  command.add_flag("--summary", flags->summary,
                   "after each answer, print one line on stderr: latencies, KV bytes, workers");
  command.footer(
      "On a terminal, lines are edited, and arrow up and down show earlier lines.\n"
      "Ctrl-C stops an answer or clears the line. Ctrl-D ends the chat.");
  command.callback([flags, &console, chosen] { *chosen = [flags, &console] { return RunChat(*flags, console); }; });
}

}  // namespace baton
