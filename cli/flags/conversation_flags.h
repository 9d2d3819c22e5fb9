// The flags of a conversation, shared by the commands that send or render one.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "baton/v1/inference.pb.h"
#include "text/chat/conversation.h"

namespace CLI {
class App;
class Option_group;
}  // namespace CLI

namespace baton {

class ConversationFlags {
 public:
  // --chat and --messages go to `input`, the others to `command`. `this` must outlive the parse.
  void AddTo(CLI::App& command, CLI::Option_group& input);

  bool given() const { return chat_.has_value() || messages_file_.has_value(); }

  // INVALID_ARGUMENT names the flag, or the file and what is wrong in it. There must be one: given().
  absl::StatusOr<Conversation> Read() const;

  // INVALID_ARGUMENT names a flag that says something about a conversation, for commands that may go without one.
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
