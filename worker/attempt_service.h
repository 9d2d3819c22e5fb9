// What the services of both workers share: opening an attempt's stream, or refusing it.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "common/grpc.h"
#include "worker/event_stream.h"
#include "worker/wire.h"

namespace baton {

// Refuses a call. What another worker might do, or what can never be done, is an AttemptFailed event, so that the
// router can tell it from a lost worker; FAILED_PRECONDITION (the two disagree on protocol, model or numerics) is the
// call's status.
template <typename Event>
grpc::ServerWriteReactor<Event>* Refuse(const absl::Status& why) {
  v1::AttemptFailure cause = v1::ATTEMPT_FAILURE_INVALID;
  switch (why.code()) {
    case absl::StatusCode::kFailedPrecondition:
      return RefuseStream<Event>(ToGrpc(why));
    case absl::StatusCode::kResourceExhausted:
      cause = v1::ATTEMPT_FAILURE_OVERLOADED;
      break;
    case absl::StatusCode::kUnavailable:
      cause = v1::ATTEMPT_FAILURE_DRAINING;
      break;
    default:
      break;
  }
  auto stream = std::make_shared<EventStream<Event>>();
  Event event;
  FillFailed(cause, why, event.mutable_failed());
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
