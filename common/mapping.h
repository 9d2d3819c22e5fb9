// SPDX-License-Identifier: Apache-2.0
// Owns a memory mapping and unmaps it when destroyed. A moved-from Mapping is empty. Not thread-safe.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>

namespace baton {

class Mapping {
 public:
  // Calls mmap for the first `bytes` bytes of `fd`. Returns an empty Mapping if mmap fails; errno says why.
  static Mapping Map(size_t bytes, int protection, int flags, int fd = -1) {
    void* const data = mmap(nullptr, bytes, protection, flags, fd, 0);
    return data == MAP_FAILED ? Mapping() : Mapping(static_cast<std::byte*>(data), bytes);
  }

  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }

  std::byte* data() const { return data_; }  // null if empty
  size_t bytes() const { return bytes_; }

 private:
  Mapping(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace baton
