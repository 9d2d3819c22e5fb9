// SPDX-License-Identifier: Apache-2.0
// Takes a stream of server-sent events apart (https://html.spec.whatwg.org/multipage/server-sent-events.html). Only
// the data of events counts: names, ids and comments are skipped. Not thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace baton {

class EventStream {
 public:
  static constexpr size_t kMaxEventBytes = size_t{1} << 20;

  // Takes the next bytes of the stream, cut anywhere, and gives `on_event` the data of each event that they complete.
  // Stops at the first error of `on_event`. RESOURCE_EXHAUSTED: an event has more than kMaxEventBytes.
  absl::Status Feed(std::string_view bytes, absl::FunctionRef<absl::Status(std::string_view)> on_event);

 private:
  absl::Status TakeLine(absl::FunctionRef<absl::Status(std::string_view)> on_event);

  std::string line_;  // without its end
  std::string data_;
  bool has_data_ = false;
  bool after_cr_ = false;  // a line feed that follows belongs to the same line end
};

}  // namespace baton
