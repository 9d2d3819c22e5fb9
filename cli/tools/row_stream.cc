// SPDX-License-Identifier: Apache-2.0
#include "cli/tools/row_stream.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {
namespace {

constexpr size_t kChunkBytes = size_t{16} << 20;

// Runs `task` on `count` threads, one of them the caller's, and waits for all.
void RunThreads(int count, const std::function<void()>& task) {
  std::vector<std::thread> threads;
  threads.reserve(count - 1);
  for (int i = 1; i < count; ++i) threads.emplace_back(task);
  task();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

absl::Status StreamRows(const RowStream& stream) {
  const int64_t chunk_rows = std::clamp<int64_t>(static_cast<int64_t>(kChunkBytes / stream.row_bytes), 1, stream.rows);
  std::vector<std::byte> chunk(chunk_rows * stream.row_bytes);
  for (int64_t begin = 0; begin < stream.rows; begin += chunk_rows) {
    const int64_t count = std::min(chunk_rows, stream.rows - begin);
    const int threads = static_cast<int>(std::min<int64_t>(stream.threads, count));
    std::atomic<int64_t> failed = -1;
    // Threads take single rows: a thread whose CPU is busy with another program delays no other thread.
    std::atomic<int64_t> next = 0;
    RunThreads(threads, [&] {
      for (int64_t row = next++; row < count; row = next++) {
        const std::span<std::byte> out(chunk.data() + row * stream.row_bytes, stream.row_bytes);
        if (!stream.make(begin + row, out)) failed = begin + row;
      }
    });
    if (failed >= 0) return absl::InvalidArgumentError(Concat("row ", failed.load(), " has a value out of range"));
    BATON_RETURN_IF_ERROR(stream.write(std::span(chunk).first(count * stream.row_bytes)));
  }
  return absl::OkStatus();
}

}  // namespace baton
