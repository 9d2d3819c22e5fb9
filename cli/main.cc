#include <unistd.h>

#include <iostream>

#include "cli/app.h"
#include "cli/console/interrupt.h"

int main(int argc, char** argv) {
  baton::Interrupt interrupt;
  const baton::SignalWatcher watcher(interrupt);
  const baton::Console console = {.input_fd = STDIN_FILENO,
                                  .input_is_terminal = isatty(STDIN_FILENO) != 0,
                                  .err_is_terminal = isatty(STDERR_FILENO) != 0,
                                  .out = &std::cout,
                                  .err = &std::cerr,
                                  .interrupt = &interrupt};
  return baton::RunBaton(argc, argv, console);
}
