#include "kvtransfer/factory/create_transport.h"

#include "absl/strings/str_cat.h"
#include "kvtransfer/inproc/inproc_transport.h"
#include "kvtransfer/ucx/ucx_transport.h"

namespace baton {

absl::StatusOr<std::unique_ptr<Transport>> CreateTransport(const TransportOptions& options) {
  if (options.kind == "ucx") return CreateUcxTransport(options);
  if (options.kind == "inproc") return InprocTransport::Create(options);
  return absl::InvalidArgumentError(absl::StrCat("transport kind: \"", options.kind, "\", expected ucx or inproc"));
}

}  // namespace baton
