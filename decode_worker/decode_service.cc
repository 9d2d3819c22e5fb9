#include "decode_worker/decode_service.h"

#include <memory>
#include <utility>

#include "worker/attempt_service.h"

namespace baton {
namespace {

// Tokens that a slow router has not taken yet travel together.
bool JoinTokens(v1::DecodeEvent& last, v1::DecodeEvent& next) {
  if (!last.has_tokens() || !next.has_tokens()) return false;
  last.mutable_tokens()->MergeFrom(next.tokens());
  return true;
}

}  // namespace

DecodeService::DecodeService(AttemptLimits limits, const Parts& parts) : limits_(std::move(limits)), parts_(parts) {}

absl::Status DecodeService::CheckMode(bool local) const {
  if (local && !parts_.prefills_locally) {
    return absl::InvalidArgumentError("prefill_locally is set, expected a worker with role both");
  }
  if (!local && parts_.receiver == nullptr) {
    return absl::InvalidArgumentError(
        "prefill_locally is not set, but this worker takes no handoffs: it has no secret");
  }
  return absl::OkStatus();
}

grpc::ServerWriteReactor<v1::DecodeEvent>* DecodeService::Decode(grpc::CallbackServerContext*,
                                                                 const v1::DecodeRequest* request) {
  absl::StatusOr<Attempt> attempt = ParseAttempt(request->header(), limits_);
  if (!attempt.ok()) return Refuse<v1::DecodeEvent>(attempt.status());
  const bool local = request->prefill_locally();
  if (absl::Status mode = CheckMode(local); !mode.ok()) return Refuse<v1::DecodeEvent>(mode);
  absl::StatusOr<std::shared_ptr<void>> ticket = parts_.admission->Enter();
  if (!ticket.ok()) return Refuse<v1::DecodeEvent>(ticket.status());
  const AttemptKey key = attempt->key;
  if (!local) {
    if (absl::Status opened = parts_.receiver->OpenAttempt(key); !opened.ok()) {
      // An attempt that is not newer than one before breaks the contract; the rest passes.
      if (absl::IsFailedPrecondition(opened)) opened = absl::InvalidArgumentError(opened.message());
      return Refuse<v1::DecodeEvent>(opened);
    }
  }

  auto stream = MakeStream<v1::DecodeEvent>(*std::move(ticket), &JoinTokens);
  parts_.thread->Post([engine = parts_.engine, attempt = *std::move(attempt), stream, local] {
    local ? engine->SubmitLocal(attempt, stream) : engine->Await(attempt, stream);
  });
  return EventStream<v1::DecodeEvent>::Serve(std::move(stream), [this, key, local] {
    // The writer is told at once; what computes here leaves the batch after the current step.
    if (!local) parts_.receiver->CloseAttempt(key);
    parts_.thread->Post([engine = parts_.engine, key] { engine->Cancel(key); });
  });
}

}  // namespace baton
