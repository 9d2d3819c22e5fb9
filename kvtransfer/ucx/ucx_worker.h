// A UCX context with one worker, for active messages over tcp: creation, configuration, progress, orderly end.
//
// Created by one thread, then used by the I/O thread alone.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton {

// `what` failed with `status`, in words.
absl::Status UcxError(ucs_status_t status, const std::string& what);

// Whether the user allows shared memory: a UCX_TLS that names no transport of shared memory forbids it.
bool UcxMayShareMemory();

class UcxWorker {
 public:
  // `device`: the network device it opens sockets on, which other devices' hosts cannot reach; empty: all.
  static absl::StatusOr<std::unique_ptr<UcxWorker>> Create(const std::string& device);
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  ucp_worker_h handle() const { return worker_; }

  absl::StatusOr<std::string> Address() const;

  // True if there was anything to do.
  bool Progress() { return ucp_worker_progress(worker_) != 0; }
  // Readable when there is something to progress, provided that Arm returned true just before.
  int event_fd() const { return event_fd_; }
  bool Arm() { return ucp_worker_arm(worker_) == UCS_OK; }

  // Something of the worker is still in use and cannot be taken back: destroying it would abort the process, so it
  // stays allocated until the process ends.
  void Abandon();

 private:
  UcxWorker() = default;

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;
  bool abandoned_ = false;
};

}  // namespace baton
