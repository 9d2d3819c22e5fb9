// SPDX-License-Identifier: Apache-2.0
// The flags of a conversation, for the commands that send or render conversations.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "baton/v1/inference.pb.h"
#include "cli/console/console.h"
#include "text/chat/conversation.h"

namespace CLI {
class App;
class Option_group;
}  // namespace CLI

namespace baton {

class ConversationFlags {
 public:
  // Adds --chat and --messages to `input`, and the other flags to `command`. `this` must outlive the parse.
  void AddTo(CLI::App& command, CLI::Option_group& input);

  // Reads the standard input for `--chat -`. Fails as TakeInput does.
  absl::Status TakeInputs(const Console& console);

  bool given() const { return chat_.has_value() || messages_file_.has_value(); }

  // Returns the conversation that the flags give: given() must be true. INVALID_ARGUMENT names the flag, or the file
  // and the problem.
  absl::StatusOr<Conversation> Read() const;

  // For commands that may go without a conversation. INVALID_ARGUMENT names a flag that needs a conversation.
  absl::Status CheckNone() const;

 private:
  std::optional<std::string> chat_;
  std::optional<std::string> system_;
  std::optional<std::string> messages_file_;
  std::optional<std::string> tools_file_;
  std::optional<std::string> template_args_;
};

void ToProto(const Conversation& conversation, v1::ChatInput& chat);

}  // namespace baton
