// A UCX context with one worker and the memory registered with it: creation, configuration, progress, orderly end.
//
// Created and given its regions by one thread, then used by the I/O thread alone.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvtransfer/transport.h"

namespace baton {

// `what` failed with `status`, in words.
absl::Status UcxError(ucs_status_t status, const std::string& what);

// What a transport needs UCX for. Kept apart, so that a message never leaves through an endpoint made for memory: such
// endpoints have no error handling, and UCX aborts the process when a tcp connection of theirs breaks at the wrong
// time.
enum class UcxUse : uint8_t {
  kMessages,  // active messages over tcp
  kMemory,    // puts into memory that processes of one host share
};

// Whether the user lets UCX use shared memory; UCX_TLS may say otherwise.
bool UcxMayShareMemory();

class UcxWorker {
 public:
  // `device`: the network device it opens sockets on, which other devices' hosts cannot reach; empty: all.
  static absl::StatusOr<std::unique_ptr<UcxWorker>> Create(UcxUse use, const std::string& device);
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  ucp_worker_h handle() const { return worker_; }

  // Memory of UCX's own allocation, which is what other processes can map. RESOURCE_EXHAUSTED names the bytes.
  absl::StatusOr<TransportMemory> AllocateRegion(size_t bytes);

  // The first region; empty if there is none.
  TransportMemory region() const { return regions_.empty() ? TransportMemory{} : regions_[0].memory; }
  absl::StatusOr<std::string> RegionKey() const;
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
  struct Region {
    ucp_mem_h handle;
    TransportMemory memory;
  };

  UcxWorker() = default;

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;
  std::vector<Region> regions_;
  bool abandoned_ = false;
};

}  // namespace baton
