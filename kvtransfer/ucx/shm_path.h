// A peer's region, mapped into this process through UCX, and puts into it.
//
// The endpoint behind it has no error handling, because UCX has shared memory only without: that the peer is gone must
// be learned elsewhere. Puts into mapped memory are plain stores, done when Put returns, also while the peer is stopped
// or dead; should UCX delay one, pending() counts it. I/O thread only.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvtransfer/ucx/frame.h"

namespace baton {

class ShmPath {
 public:
  // Fails if the region cannot be mapped here (another memory namespace, a region not in shared memory).
  static absl::StatusOr<std::unique_ptr<ShmPath>> Attach(ucp_worker_h worker, const RegionOffer& offer,
                                                         uint64_t region_address, uint64_t region_bytes);
  ~ShmPath();
  ShmPath(const ShmPath&) = delete;
  ShmPath& operator=(const ShmPath&) = delete;

  void Put(uint64_t offset, const std::byte* local, size_t bytes);
  // What was put before is in the peer's memory once pending() is 0 again.
  void Flush();

  // Maps a part of the region for real, as far as its owner has taken the memory: each machine page costs a fault
  // otherwise, when it is first put to. False when there is nothing left to do.
  bool Prefault();

  int pending() const;
  // Of the first put or flush that failed.
  const absl::Status& failure() const { return failure_; }

  // Unmaps the region. Call when nothing is pending; done when nothing is pending again.
  void Close();

 private:
  ShmPath() = default;
  static void OnDone(void* request, ucs_status_t status, void* path);
  void Track(ucs_status_ptr_t request);
  void Failed(ucs_status_t status);

  ucp_ep_h endpoint_ = nullptr;
  ucp_rkey_h key_ = nullptr;
  uint64_t region_address_ = 0;
  std::byte* mapped_ = nullptr;  // the region, here
  uint64_t region_bytes_ = 0;
  uint64_t prefaulted_ = 0;
  int pending_ = 0;  // puts and flushes
  ucs_status_ptr_t closing_ = nullptr;
  absl::Status failure_;
};

}  // namespace baton
