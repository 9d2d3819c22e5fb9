// SPDX-License-Identifier: Apache-2.0
// Takes an attempt's events: a gRPC stream, or a test. Thread-safe.
#pragma once

namespace baton {

template <typename Event>
class EventSink {
 public:
  virtual ~EventSink() = default;
  // Never blocks. With `last` the stream ends after this event, with status OK. Ignores later events, and every event
  // after the caller is gone.
  virtual void Write(Event event, bool last) = 0;
  // Returns whether the caller is gone: nobody needs further events.
  virtual bool cancelled() const = 0;
};

}  // namespace baton
