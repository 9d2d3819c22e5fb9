// SPDX-License-Identifier: Apache-2.0
#include "decode_worker/decode_service.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "worker/attempt_service.h"
#include "worker/reports.h"

namespace baton {
namespace {

// Joins tokens that a slow router has not taken yet.
bool JoinTokens(v1::DecodeEvent& last, v1::DecodeEvent& next) {
  if (!last.has_tokens() || !next.has_tokens()) return false;
  last.mutable_tokens()->MergeFrom(next.tokens());
  return true;
}

absl::StatusOr<MigrationOrder> ParseOrder(const v1::MigrateRequest& request) {
  BATON_RETURN_IF_ERROR(CheckProtocol(request.protocol()));
  MigrationOrder order;
  BATON_ASSIGN_OR_RETURN(order.from.request, RequestId::FromBytes(request.request_id()));
  order.to.request = order.from.request;
  order.from.attempt = request.from_attempt();
  order.to.attempt = request.to_attempt();
  if (order.from.attempt == 0 || order.to.attempt <= order.from.attempt) {
    return absl::InvalidArgumentError(absl::StrCat("from_attempt is ", order.from.attempt, " and to_attempt ",
                                                   order.to.attempt, ", expected 1 or more, and a later attempt"));
  }
  if (request.target().handoff_address().empty()) {
    return absl::InvalidArgumentError("target.handoff_address is empty, expected host:port");
  }
  order.prior_output_tokens = request.prior_output_tokens();
  order.target = {request.target().worker_id(), request.target().epoch(), request.target().handoff_address()};
  return order;
}

}  // namespace

DecodeService::DecodeService(AttemptLimits limits, const Parts& parts) : limits_(std::move(limits)), parts_(parts) {}

grpc::ServerWriteReactor<v1::DecodeEvent>* DecodeService::Decode(grpc::CallbackServerContext*,
                                                                 const v1::DecodeRequest* request) {
  absl::StatusOr<Attempt> attempt = ParseAttempt(request->header(), limits_);
  if (!attempt.ok()) return Refuse<v1::DecodeEvent>(attempt.status());
  const bool local = request->prefill_locally();
  if (!local && parts_.receiver == nullptr) {
    return Refuse<v1::DecodeEvent>(
        absl::InvalidArgumentError("prefill_locally is not set, but this worker takes no handoffs: it has no secret"));
  }
  absl::StatusOr<std::shared_ptr<void>> ticket = parts_.gate->Enter(local ? Route::kLocal : Route::kReceive);
  if (!ticket.ok()) return Refuse<v1::DecodeEvent>(ticket.status());
  const AttemptKey key = attempt->key;
  if (!local) {
    if (absl::Status opened = parts_.receiver->OpenAttempt(key, attempt->due); !opened.ok()) {
      // An attempt that is not newer than an earlier one breaks the contract with the router.
      if (absl::IsFailedPrecondition(opened)) opened = absl::InvalidArgumentError(opened.message());
      return Refuse<v1::DecodeEvent>(opened);
    }
  }

  auto stream = MakeStream<v1::DecodeEvent>(*std::move(ticket), &JoinTokens);
  parts_.compute->Post([attempt = *std::move(attempt), stream, local](Scheduler& scheduler) {
    local ? scheduler.RunLocally(attempt, ReportTo(stream)) : scheduler.Receive(attempt, ReportTo(stream));
  });
  return EventStream<v1::DecodeEvent>::Serve(std::move(stream), [this, key, local] {
    // The writer hears of the abort at once. A running sequence leaves the batch after the current step.
    if (!local) parts_.receiver->CloseAttempt(key);
    parts_.compute->Post([key](Scheduler& scheduler) { scheduler.Cancel(key); });
  });
}

grpc::ServerWriteReactor<v1::PrefillEvent>* DecodeService::Migrate(grpc::CallbackServerContext*,
                                                                   const v1::MigrateRequest* request) {
  const absl::StatusOr<MigrationOrder> order = ParseOrder(*request);
  if (!order.ok()) return Refuse<v1::PrefillEvent>(order.status());
  if (parts_.receiver == nullptr) {
    return Refuse<v1::PrefillEvent>(
        absl::InvalidArgumentError("this worker takes part in no handoffs: it has no secret"));
  }
  absl::StatusOr<std::shared_ptr<void>> ticket = parts_.gate->EnterToLeave();
  if (!ticket.ok()) return Refuse<v1::PrefillEvent>(ticket.status());
  auto stream = MakeStream<v1::PrefillEvent>(*std::move(ticket));
  parts_.compute->Post([order = *order, stream](Scheduler& scheduler) { scheduler.Migrate(order, ReportTo(stream)); });
  return EventStream<v1::PrefillEvent>::Serve(stream, [this, order = *order] {
    parts_.compute->Post([order](Scheduler& scheduler) { scheduler.CancelMigration(order); });
  });
}

}  // namespace baton
