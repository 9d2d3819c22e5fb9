// SPDX-License-Identifier: Apache-2.0
// Reads what a user gives on the standard input: a text in place of a flag's value, or the lines of a conversation.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "cli/console/console.h"

namespace baton {

// Replaces the value "-" of `flag` by the whole standard input, final newline included. Leaves other values alone.
// INVALID_ARGUMENT when the input is empty or over 16 MiB; CANCELLED when interrupted; otherwise as the system says.
absl::Status TakeInput(const Console& console, const char* flag, std::optional<std::string>* value);

// Where a conversation's lines come from.
class LineSource {
 public:
  virtual ~LineSource() = default;

  enum class Result { kLine, kEnd, kInterrupted, kTooLong };
  // Waits for the next line and stores it without its newline. kInterrupted: an interrupt ended the wait; reading can
  // go on once the interrupt is reset. kTooLong: the line is over the source's limit, and reading cannot go on.
  virtual Result Next(std::string* line) = 0;
};

// Reads lines from a file descriptor as they are. Not thread-safe. Does not own the descriptor.
class LineReader final : public LineSource {
 public:
  static constexpr size_t kMaxLineBytes = 1 << 20;

  LineReader(int fd, const Interrupt& interrupt) : fd_(fd), interrupt_(interrupt) {}

  // The last line may lack its newline. A line over kMaxLineBytes is kTooLong.
  Result Next(std::string* line) override;

 private:
  const int fd_;
  const Interrupt& interrupt_;
  std::string buffer_;
  bool at_end_ = false;
};

}  // namespace baton
