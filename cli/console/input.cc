// SPDX-License-Identifier: Apache-2.0
#include "cli/console/input.h"

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
  while (console.interrupt->WaitForInput(console.input_fd)) {
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
  return absl::CancelledError("interrupted");
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
    if (!interrupt_.WaitForInput(fd_)) return Result::kInterrupted;
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
