// SPDX-License-Identifier: Apache-2.0
// A std::ostream onto a file descriptor that remembers why a write failed.
//
// std::cout only says that something failed. Commands ask status() so that a full disk is reported as one. Not
// thread-safe. Does not own the descriptor.
#pragma once

#include <array>
#include <ostream>
#include <streambuf>

#include "absl/status/status.h"

namespace baton {

class OutputStream final : public std::ostream {
 public:
  explicit OutputStream(int fd) : std::ostream(nullptr), buffer_(fd) { rdbuf(&buffer_); }
  ~OutputStream() override { flush(); }

  // Returns OK, or the reason of the first write that failed. Buffered text counts as written: flush first.
  absl::Status status() const;

 private:
  class Buffer final : public std::streambuf {
   public:
    explicit Buffer(int fd);
    int error() const { return error_; }

   protected:
    int_type overflow(int_type character) override;
    int sync() override;

   private:
    const int fd_;
    int error_ = 0;  // errno of the first write that failed
    std::array<char, 4096> bytes_;
  };

  Buffer buffer_;
};

}  // namespace baton
