#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/client.h"
#include "cli/commands/commands.h"
#include "cli/console/interrupt.h"
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

// A conversation: `request` holds its history, which every turn sends whole and then extends.
class Dialogue {
 public:
  Dialogue(const ChatFlags& flags, const Console& console, Client& client, v1::GenerateRequest request,
           absl::Duration timeout)
      : flags_(flags), console_(console), client_(client), request_(std::move(request)), timeout_(timeout) {}

  // One turn. A cancelled answer stays in the history as far as it came; a turn without any answer leaves no trace.
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

int Talk(Dialogue& dialogue, const Console& console) {
  LineReader lines(console.input_fd, *console.interrupt);
  std::string question;
  while (true) {
    if (console.input_is_terminal) *console.err << "> " << std::flush;
    switch (lines.Next(&question)) {
      case LineReader::Result::kEnd:
        if (console.input_is_terminal) *console.err << std::endl;
        return kExitOk;
      case LineReader::Result::kInterrupted:
        *console.err << std::endl;
        return kExitInterrupted;
      case LineReader::Result::kTooLong:
        *console.err << "baton chat: a line of over " << LineReader::kMaxLineBytes << " bytes" << std::endl;
        return kExitError;
      case LineReader::Result::kLine:
        break;
    }
    if (question.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (ValidUtf8Prefix(question) < question.size()) {
      *console.err << "baton chat: the line is not valid UTF-8" << std::endl;
      continue;
    }
    const absl::Status status = dialogue.Ask(question);
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
  if (console.input_is_terminal) *console.err << "Ctrl-C stops an answer, Ctrl-D ends the chat." << std::endl;
  Dialogue dialogue(flags, console, **client, std::move(request), *timeout);
  return Talk(dialogue, console);
}

}  // namespace

void AddChatCommand(CLI::App& app, const Console& console, Command* chosen) {
  const auto flags = std::make_shared<ChatFlags>();
  CLI::App& command = *app.add_subcommand("chat", "A conversation: one line per turn, the history is kept.");
  AddTarget(command, &flags->target);
  command.add_option("--system", flags->system, "system message before the conversation");
  flags->generation.AddTo(command);
  command.add_flag("--summary", flags->summary, "after each answer one line on stderr about how it was served");
  command.callback([flags, &console, chosen] { *chosen = [flags, &console] { return RunChat(*flags, console); }; });
}

}  // namespace baton
