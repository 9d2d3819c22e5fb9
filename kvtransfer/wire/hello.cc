#include "kvtransfer/wire/hello.h"

#include "absl/strings/str_cat.h"
#include "engine/types.h"

namespace baton::handoff {
namespace {

template <typename T>
absl::Status CheckSame(const char* field, const T& ours, const T& theirs) {
  if (ours == theirs) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the workers do not fit: ", field, " is ", theirs, " at the peer and ", ours, " here"));
}

}  // namespace

void SetLayout(const KvLayout& layout, uint32_t pages_total, Hello* hello) {
  hello->layers = uint32_t(layout.layers);
  hello->kv_heads = uint32_t(layout.kv_heads);
  hello->head_dim = uint32_t(layout.head_dim);
  hello->page_tokens = uint32_t(layout.page_tokens);
  hello->dtype = std::string(Name(layout.dtype));
  hello->pages_total = pages_total;
}

absl::Status CheckPair(const Hello& ours, const Hello& theirs) {
  absl::Status status = CheckSame("protocol", ours.protocol, theirs.protocol);
  status.Update(CheckSame("numerics_id", ours.numerics_id, theirs.numerics_id));
  status.Update(CheckSame("layout.layers", ours.layers, theirs.layers));
  status.Update(CheckSame("layout.kv_heads", ours.kv_heads, theirs.kv_heads));
  status.Update(CheckSame("layout.head_dim", ours.head_dim, theirs.head_dim));
  status.Update(CheckSame("layout.page_tokens", ours.page_tokens, theirs.page_tokens));
  status.Update(CheckSame("layout.dtype", ours.dtype, theirs.dtype));
  if (status.ok() && theirs.worker_id.empty()) return absl::FailedPreconditionError("the peer's worker_id is empty");
  if (status.ok() && theirs.pages_total == 0) return absl::FailedPreconditionError("the peer's page pool is empty");
  return status;
}

}  // namespace baton::handoff
