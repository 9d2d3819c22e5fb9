// Reads lines from a file descriptor while an interrupt can end the wait. Not thread-safe; does not own the descriptor.
#pragma once

#include <cstddef>
#include <string>

namespace baton {

class Interrupt;

class LineReader {
 public:
  static constexpr size_t kMaxLineBytes = 1 << 20;

  LineReader(int fd, const Interrupt& interrupt) : fd_(fd), interrupt_(interrupt) {}

  enum class Result { kLine, kEnd, kInterrupted, kTooLong };
  // Waits for the next line, which comes without its newline; a last line may lack one. A line over kMaxLineBytes is
  // kTooLong, and reading cannot go on.
  Result Next(std::string* line);

 private:
  const int fd_;
  const Interrupt& interrupt_;
  std::string buffer_;
  bool at_end_ = false;
};

}  // namespace baton
