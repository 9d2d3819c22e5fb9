// SPDX-License-Identifier: Apache-2.0
// Identifies this process, and tells whether another process is on the same host and alive.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file_descriptor.h"
#include "kvtransfer/ucx/frame.h"

namespace baton {

// Returns the identity of this process. A field that the system does not provide is 0; then no memory is shared.
Identity LocalIdentity();

// Returns whether both identify the same process.
bool IsSameProcess(const Identity& a, const Identity& b);

// OK if this process can share memory with `theirs` and watch its life: same kernel, same pid namespace.
// FAILED_PRECONDITION says what is missing.
absl::Status CheckSameHost(const Identity& ours, const Identity& theirs);

// Watches another process of this host; fd() becomes readable when the process dies. Owns a pidfd. Not thread-safe.
class ProcessWatch {
 public:
  // NOT_FOUND if no process has this pid and start time.
  static absl::StatusOr<ProcessWatch> Open(uint64_t pid, uint64_t start_time);
  int fd() const { return fd_.get(); }
  // Returns whether all threads have ended and the memory is unmapped. Final once true.
  bool Dead() const;

 private:
  explicit ProcessWatch(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

}  // namespace baton
