// SPDX-License-Identifier: Apache-2.0
#include "cli/console/output_stream.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace baton {

OutputStream::Buffer::Buffer(int fd) : fd_(fd) { setp(bytes_.begin(), bytes_.end()); }

OutputStream::Buffer::int_type OutputStream::Buffer::overflow(int_type character) {
  if (sync() != 0) return traits_type::eof();
  if (traits_type::eq_int_type(character, traits_type::eof())) return traits_type::not_eof(character);
  return sputc(traits_type::to_char_type(character));
}

int OutputStream::Buffer::sync() {
  std::string_view left(pbase(), static_cast<size_t>(pptr() - pbase()));
  setp(bytes_.begin(), bytes_.end());
  while (!left.empty() && error_ == 0) {
    const ssize_t written = ::write(fd_, left.data(), left.size());
    if (written >= 0) {
      left.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      // Another program made the descriptor non-blocking.
      pollfd writable = {fd_, POLLOUT, 0};
      poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  return error_ == 0 ? 0 : -1;
}

absl::Status OutputStream::status() const {
  if (good()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the output cannot be written: ", std::generic_category().message(buffer_.error())));
}

}  // namespace baton
