// SPDX-License-Identifier: Apache-2.0
// Reads lines from a file descriptor as they are.
//
// Not thread-safe. Does not own the descriptor.
#pragma once

#include <cstddef>
#include <string>

#include "cli/console/line_source.h"

namespace baton {

class Interrupt;

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
