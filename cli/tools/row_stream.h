// Makes a large matrix row by row, with all threads, and hands it on in pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/status.h"

namespace baton {

struct RowStream {
  int64_t rows = 0;
  size_t row_bytes = 0;
  int threads = 1;
  // Fills row `row`. On any thread, several at a time. False: the row cannot be made.
  std::function<bool(int64_t row, std::span<std::byte> out)> make;
  // Takes the next bytes. On the caller's thread, in order.
  std::function<absl::Status(std::span<const std::byte>)> write;
};

// Holds some 16 MiB of rows at a time. INVALID_ARGUMENT names a row that could not be made; otherwise as `write` says.
absl::Status StreamRows(const RowStream& stream);

}  // namespace baton
