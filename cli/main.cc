// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <iostream>

#include "cli/app.h"
#include "cli/console/interrupt.h"
#include "cli/console/output_stream.h"

int main(int argc, char** argv) {
  baton::Interrupt interrupt;
  const baton::SignalWatcher watcher(interrupt);
  baton::OutputStream out(STDOUT_FILENO);
  const bool input_is_terminal = isatty(STDIN_FILENO) != 0;
  const bool err_is_terminal = isatty(STDERR_FILENO) != 0;
  const baton::Console console = {.input_fd = STDIN_FILENO,
                                  .input_is_terminal = input_is_terminal,
                                  .err_is_terminal = err_is_terminal,
                                  .screen_fd = input_is_terminal && err_is_terminal ? STDERR_FILENO : -1,
                                  .out = &out,
                                  .err = &std::cerr,
                                  .interrupt = &interrupt};
  return baton::RunBaton(argc, argv, console);
}
