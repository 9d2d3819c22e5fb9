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
  // The caller is gone: whatever is still computed for it is of no use.
  virtual bool cancelled() const = 0;
};

}  // namespace baton
