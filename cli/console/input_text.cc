// SPDX-License-Identifier: Apache-2.0
#include "cli/console/input_text.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cli/console/interrupt.h"
#include "common/status_macros.h"

namespace baton {
namespace {

constexpr size_t kMaxInputBytes = size_t{16} << 20;

absl::StatusOr<std::string> ReadInput(const Console& console) {
  std::string text;
  while (true) {
    pollfd fds[] = {{console.input_fd, POLLIN, 0}, {console.interrupt->fd(), POLLIN, 0}};
    if (poll(fds, 2, -1) < 0) continue;
    if (console.interrupt->triggered()) return absl::CancelledError("interrupted");
    if (fds[0].revents == 0) continue;
    char piece[4096];
    const ssize_t count = read(console.input_fd, piece, sizeof(piece));
    if (count == 0) return text;
    if (count > 0) {
      text.append(piece, static_cast<size_t>(count));
    } else if (errno != EINTR && errno != EAGAIN) {
      return absl::ErrnoToStatus(errno, "the standard input cannot be read");
    }
    if (text.size() > kMaxInputBytes) {
      return absl::InvalidArgumentError(absl::StrCat("the standard input has more than ", kMaxInputBytes, " bytes"));
    }
  }
}

}  // namespace

absl::Status TakeInput(const Console& console, const char* flag, std::optional<std::string>* value) {
  if (*value != "-") return absl::OkStatus();
  absl::StatusOr<std::string> text = ReadInput(console);
  if (text.ok() && text->empty()) {
    text = absl::InvalidArgumentError("the standard input is empty, expected the text of the prompt there");
  }
  if (!text.ok()) return absl::Status(text.status().code(), absl::StrCat(flag, " -: ", text.status().message()));
  *value = *std::move(text);
  return absl::OkStatus();
}

}  // namespace baton
