// SPDX-License-Identifier: Apache-2.0
// Opens or refuses an attempt's stream, for the services of both workers.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/grpc.h"
#include "common/outcome_proto.h"
#include "worker/event_stream.h"

namespace baton {

// Returns the outcome of a call that AttemptGate, ParseAttempt or HandoffReceiver::OpenAttempt refused with `why`.
inline Outcome OutcomeOfRefusal(const absl::Status& why) {
  const std::string detail(why.message());
  switch (why.code()) {
    case absl::StatusCode::kResourceExhausted: return Outcome(Cause::kOverloaded, detail);
    case absl::StatusCode::kUnavailable: return Outcome(Cause::kDraining, detail);
    case absl::StatusCode::kFailedPrecondition: return Outcome(Cause::kRefused, detail);
    default: return Outcome(Cause::kInvalid, detail);
  }
}

// Refuses a call with an AttemptFailed event, so that the router can tell the refusal from a lost worker. If the two
// disagree on protocol, model or numerics (FAILED_PRECONDITION), the refusal is the call's status.
template <typename Event>
grpc::ServerWriteReactor<Event>* Refuse(const absl::Status& why) {
  const Outcome outcome = OutcomeOfRefusal(why);
  if (outcome.cause == Cause::kRefused) return RefuseStream<Event>(ToGrpc(why));
  auto stream = std::make_shared<EventStream<Event>>();
  Event event;
  FillFailed(outcome, event.mutable_failed());
  stream->Write(std::move(event), /*last=*/true);
  return EventStream<Event>::Serve(stream, [] {});
}

// A stream that holds an admission ticket for as long as anybody holds the stream.
template <typename Event>
std::shared_ptr<EventStream<Event>> MakeStream(std::shared_ptr<void> ticket,
                                               typename EventStream<Event>::Merge merge = nullptr) {
  struct Ticketed {
    Ticketed(std::shared_ptr<void> held, typename EventStream<Event>::Merge join)
        : ticket(std::move(held)), stream(join) {}
    std::shared_ptr<void> ticket;
    EventStream<Event> stream;
  };
  auto both = std::make_shared<Ticketed>(std::move(ticket), merge);
  return {both, &both->stream};
}

}  // namespace baton
