// SPDX-License-Identifier: Apache-2.0
#include "cli/console/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "cli/console/interrupt.h"

namespace baton {

LineSource::Result LineReader::Next(std::string* line) {
  while (true) {
    if (interrupt_.triggered()) return Result::kInterrupted;
    if (const size_t newline = buffer_.find('\n'); newline != std::string::npos) {
      *line = buffer_.substr(0, newline);
      buffer_.erase(0, newline + 1);
      return Result::kLine;
    }
    if (at_end_) {
      if (buffer_.empty()) return Result::kEnd;
      *line = std::move(buffer_);
      buffer_.clear();
      return Result::kLine;
    }
    if (buffer_.size() > kMaxLineBytes) return Result::kTooLong;
    pollfd fds[] = {{fd_, POLLIN, 0}, {interrupt_.fd(), POLLIN, 0}};
    if (poll(fds, 2, -1) < 0 || fds[0].revents == 0) continue;
    char piece[4096];
    const ssize_t count = read(fd_, piece, sizeof(piece));
    if (count > 0) {
      buffer_.append(piece, static_cast<size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      at_end_ = true;
    }
  }
}

}  // namespace baton
