// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/ucx/host_identity.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace baton {
namespace {

uint64_t InodeOf(const char* path) {
  struct stat info{};
  return stat(path, &info) == 0 ? info.st_ino : 0;
}

// Reads field 22 of /proc/<pid>/stat. Field 2, the program's name in parentheses, may hold any characters.
uint64_t StartTime(uint64_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  std::getline(file, line);
  const size_t end_of_name = line.rfind(')');
  if (end_of_name == std::string::npos) return 0;
  std::istringstream fields(line.substr(end_of_name + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  uint64_t ticks = 0;
  fields >> ticks;
  return fields ? ticks : 0;
}

}  // namespace

Identity LocalIdentity() {
  Identity identity;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot_id;
  std::getline(file, boot_id);
  std::copy_n(boot_id.begin(), std::min(boot_id.size(), identity.boot_id.size()), identity.boot_id.begin());
  identity.pid_namespace = InodeOf("/proc/self/ns/pid");
  identity.pid = static_cast<uint64_t>(getpid());
  identity.start_time = StartTime(identity.pid);
  return identity;
}

bool IsSameProcess(const Identity& a, const Identity& b) {
  return a.boot_id == b.boot_id && a.pid_namespace == b.pid_namespace && a.pid == b.pid && a.start_time == b.start_time;
}

absl::Status CheckSameHost(const Identity& ours, const Identity& theirs) {
  if (ours.boot_id != theirs.boot_id || ours.boot_id[0] == '\0') {
    return absl::FailedPreconditionError("the peer runs on another host");
  }
  if (ours.pid_namespace != theirs.pid_namespace || ours.pid_namespace == 0 || theirs.start_time == 0) {
    return absl::FailedPreconditionError("the peer runs in another pid namespace, where its death is not visible");
  }
  return absl::OkStatus();
}

absl::StatusOr<ProcessWatch> ProcessWatch::Open(uint64_t pid, uint64_t start_time) {
  if (pid == 0 || pid > static_cast<uint64_t>(std::numeric_limits<pid_t>::max())) {
    return absl::NotFoundError(absl::StrCat("cannot watch process ", pid, ": not a valid process id"));
  }
  FileDescriptor fd(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0)));
  if (!fd.valid()) {
    return absl::NotFoundError(absl::StrCat("cannot watch process ", pid, ": ", std::system_category().message(errno)));
  }
  // Checks the start time after pidfd_open: if it matches now, the descriptor refers to the intended process.
  if (StartTime(pid) != start_time)
    return absl::NotFoundError(absl::StrCat("process ", pid, " is not the peer: its start time differs"));
  return ProcessWatch(std::move(fd));
}

bool ProcessWatch::Dead() const {
  pollfd poll_fd{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLIN) != 0;
}

}  // namespace baton
