// SPDX-License-Identifier: Apache-2.0
// Reads lines that the user edits on a terminal: cursor keys, and a history of this session on arrow up and down.
//
// A wrapper of libedit. Not thread-safe. Does not own the descriptors.
#pragma once

#include <memory>
#include <string>

#include "cli/console/input.h"

namespace baton {

class LineEditor final : public LineSource {
 public:
  // Null when lines cannot be edited on `input_fd` and `screen_fd`, which must be terminals. `prompt` stands before
  // each line.
  static std::unique_ptr<LineEditor> Create(int input_fd, int screen_fd, std::string prompt,
                                            const Interrupt& interrupt);
  ~LineEditor() override;

  // Ctrl-D on an empty line is kEnd. An interrupt drops what was typed. A line that is not blank enters the history.
  Result Next(std::string* line) override;

 private:
  struct State;

  explicit LineEditor(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace baton
