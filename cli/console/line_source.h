// SPDX-License-Identifier: Apache-2.0
// Where a conversation's lines come from.
#pragma once

#include <string>

namespace baton {

class LineSource {
 public:
  virtual ~LineSource() = default;

  enum class Result { kLine, kEnd, kInterrupted, kTooLong };
  // Waits for the next line and stores it without its newline. kInterrupted: an interrupt ended the wait; reading can
  // go on once the interrupt is reset. kTooLong: the line is over the source's limit, and reading cannot go on.
  virtual Result Next(std::string* line) = 0;
};

}  // namespace baton
