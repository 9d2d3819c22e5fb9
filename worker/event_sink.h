// Where an attempt's events go: a gRPC stream, or a test. Thread-safe.
#pragma once

namespace baton {

template <typename Event>
class EventSink {
 public:
  virtual ~EventSink() = default;
  // Never blocks. With `last` the stream ends after this event, with status OK; later events are ignored, and so is
  // everything once the caller is gone.
  virtual void Write(Event event, bool last) = 0;
};

}  // namespace baton
