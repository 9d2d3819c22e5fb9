// SPDX-License-Identifier: Apache-2.0
// Makes the rows of a large matrix on several threads, and hands them on in order.
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
  // Fills row `row`, on any thread, several rows at a time. Returns false when the row cannot be made.
  std::function<bool(int64_t row, std::span<std::byte> out)> make;
  // Takes the next bytes, in order, on the caller's thread.
  std::function<absl::Status(std::span<const std::byte>)> write;
};

// Holds about 16 MiB of rows at a time. INVALID_ARGUMENT names a row that could not be made. Other errors are those of
// `write`.
absl::Status StreamRows(const RowStream& stream);

}  // namespace baton
