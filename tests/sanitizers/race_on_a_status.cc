// SPDX-License-Identifier: Apache-2.0
// Two threads assign one Status without a lock: ThreadSanitizer must report the race, whatever tests/tsan.supp hides.
#include <thread>

#include "absl/status/status.h"

int main() {
  absl::Status status = absl::InternalError("before");
  std::thread first([&] { status = absl::InternalError("first"); });
  std::thread second([&] { status = absl::InternalError("second"); });
  first.join();
  second.join();
}
