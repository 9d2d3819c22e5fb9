// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/wire/hello.h"

#include "absl/strings/str_cat.h"

namespace baton::handoff {
namespace {

template <typename T>
absl::Status CheckSame(const char* field, const T& ours, const T& theirs) {
  if (ours == theirs) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the workers do not fit: ", field, " is ", theirs, " at the peer and ", ours, " here"));
}

}  // namespace

absl::Status CheckPair(const Hello& ours, const Hello& theirs) {
  absl::Status status = CheckSame("protocol", ours.protocol, theirs.protocol);
  status.Update(CheckSame("numerics_id", ours.numerics_id, theirs.numerics_id));
  status.Update(CheckSame("layout", ours.layout, theirs.layout));
  if (status.ok() && theirs.worker_id.empty()) return absl::FailedPreconditionError("the peer's worker_id is empty");
  if (status.ok() && theirs.pages_total == 0) return absl::FailedPreconditionError("the peer's page pool is empty");
  return status;
}

}  // namespace baton::handoff
