// SPDX-License-Identifier: Apache-2.0
// Owns a UCX context with one worker, for active messages over the network. Not thread-safe: one thread creates it,
// then only the I/O thread uses it.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvtransfer/ucx/network.h"

namespace baton {

// OK for UCS_OK, else "<what>: <text of status>" with the matching code.
absl::Status FromUcx(ucs_status_t status, const std::string& what);

// Changes process-wide settings that UCX applied when it was loaded. Idempotent; call before any other use of UCX.
void ConfigureUcxLibrary();

// The user's setting of UCX_TLS or UCX_NET_DEVICES; empty if it is not set.
std::string UcxUserSetting(const char* variable);

// Returns false if the environment's UCX_TLS names no shared-memory transport.
bool UcxMayShareMemory();

class UcxWorker {
 public:
  // Hosts that cannot reach the devices of `network` cannot connect.
  static absl::StatusOr<std::unique_ptr<UcxWorker>> Create(const NetworkChoice& network);
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  ucp_worker_h handle() const { return worker_; }

  absl::StatusOr<std::string> Address() const;

  // Returns true if there was work.
  bool Progress() { return ucp_worker_progress(worker_) != 0; }
  // Becomes readable when there is work, if Arm returned true just before.
  int event_fd() const { return event_fd_; }
  bool Arm() { return ucp_worker_arm(worker_) == UCS_OK; }

  // Leaks the worker: UCX still uses it, and destroying it would abort the process.
  void Abandon();

 private:
  UcxWorker() = default;

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;
  bool abandoned_ = false;
};

}  // namespace baton
