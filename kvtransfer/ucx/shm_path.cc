#include "kvtransfer/ucx/shm_path.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "kvtransfer/ucx/ucx_worker.h"

namespace baton {

absl::StatusOr<std::unique_ptr<ShmPath>> ShmPath::Attach(ucp_worker_h worker, const RegionOffer& offer,
                                                         uint64_t region_address, uint64_t region_bytes) {
  std::unique_ptr<ShmPath> path(new ShmPath);
  path->region_address_ = region_address;
  path->region_bytes_ = region_bytes;
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  params.address = reinterpret_cast<const ucp_address_t*>(offer.worker_address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
  ucs_status_t status = ucp_ep_create(worker, &params, &path->endpoint_);
  if (status != UCS_OK) return UcxError(status, "creating the shared memory endpoint");
  status = ucp_ep_rkey_unpack(path->endpoint_, offer.remote_key.data(), &path->key_);
  if (status != UCS_OK) return UcxError(status, "unpacking the key of the peer's region");
  void* mapped = nullptr;
  status = ucp_rkey_ptr(path->key_, region_address, &mapped);
  if (status != UCS_OK) return UcxError(status, "mapping the peer's region");
  path->mapped_ = static_cast<std::byte*>(mapped);
  return path;
}

ShmPath::~ShmPath() {
  if (pending_ > 0) return;  // the worker is abandoned, and the endpoint with it
  Close();
  if (closing_ != nullptr) ucp_request_free(closing_);
}

void ShmPath::Track(ucs_status_ptr_t request) {
  if (UCS_PTR_IS_PTR(request)) {
    ++pending_;
  } else if (UCS_PTR_IS_ERR(request)) {
    Failed(UCS_PTR_STATUS(request));
  }
}

void ShmPath::Failed(ucs_status_t status) {
  if (failure_.ok()) failure_ = UcxError(status, "writing to the peer's shared memory");
}

void ShmPath::OnDone(void* request, ucs_status_t status, void* path) {
  auto* const self = static_cast<ShmPath*>(path);
  --self->pending_;
  if (status != UCS_OK) self->Failed(status);
  ucp_request_free(request);
}

void ShmPath::Put(uint64_t offset, const std::byte* local, size_t bytes) {
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = &ShmPath::OnDone;
  params.user_data = this;
  Track(ucp_put_nbx(endpoint_, local, bytes, region_address_ + offset, key_, &params));
}

void ShmPath::Flush() {
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = &ShmPath::OnDone;
  params.user_data = this;
  Track(ucp_ep_flush_nbx(endpoint_, &params));
}

void ShmPath::Close() {
  mapped_ = nullptr;
  if (key_ != nullptr) ucp_rkey_destroy(std::exchange(key_, nullptr));
  if (endpoint_ == nullptr) return;
  ucp_request_param_t params{};
  const ucs_status_ptr_t request = ucp_ep_close_nbx(std::exchange(endpoint_, nullptr), &params);
  if (UCS_PTR_IS_PTR(request)) closing_ = request;
}

bool ShmPath::Prefault() {
  constexpr uint64_t kSlice = 4 << 20;  // well under a millisecond
  if (mapped_ == nullptr || prefaulted_ >= region_bytes_) return false;
  const uint64_t bytes = std::min(kSlice, region_bytes_ - prefaulted_);
  // A region begins at a machine page. Memory that its owner has not taken yet is not taken for it.
  const size_t machine_page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> there((bytes + machine_page - 1) / machine_page);
  const bool all_there = mincore(mapped_ + prefaulted_, bytes, there.data()) == 0 &&
                         std::all_of(there.begin(), there.end(), [](unsigned char page) { return (page & 1) != 0; });
  // Where the kernel cannot do it, puts will.
  const bool done = all_there && madvise(mapped_ + prefaulted_, bytes, MADV_POPULATE_WRITE) == 0;
  prefaulted_ = done ? prefaulted_ + bytes : region_bytes_;
  return true;
}

int ShmPath::pending() const {
  const bool closing = closing_ != nullptr && ucp_request_check_status(closing_) == UCS_INPROGRESS;
  return pending_ + (closing ? 1 : 0);
}

}  // namespace baton
