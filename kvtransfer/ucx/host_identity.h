// Which process we are, whether another one is on the same host, and whether it still lives.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file_descriptor.h"
#include "kvtransfer/ucx/frame.h"

namespace baton {

// This process. Fields that the system does not tell are 0; the processes then do not share memory.
Identity LocalIdentity();

// OK if memory can be shared with `theirs` and its life can be watched: same kernel, same pid namespace.
// FAILED_PRECONDITION says what is missing.
absl::Status CheckSameHost(const Identity& ours, const Identity& theirs);

// A hold on another process of this host: fd() becomes readable once it is dead.
class ProcessWatch {
 public:
  // NOT_FOUND if no process has this pid and start time.
  static absl::StatusOr<ProcessWatch> Open(uint64_t pid, uint64_t start_time);
  int fd() const { return fd_.get(); }
  // All of its threads have ended and its memory is unmapped. Final.
  bool Dead() const;

 private:
  explicit ProcessWatch(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

}  // namespace baton
