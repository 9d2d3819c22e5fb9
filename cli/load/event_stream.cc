// SPDX-License-Identifier: Apache-2.0
#include "cli/load/event_stream.h"

#include <utility>

#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {

absl::Status EventStream::Feed(std::string_view bytes, absl::FunctionRef<absl::Status(std::string_view)> on_event) {
  while (!bytes.empty()) {
    if (after_cr_ && bytes.front() == '\n') bytes.remove_prefix(1);
    after_cr_ = false;
    const size_t end = bytes.find_first_of("\r\n");
    line_ += bytes.substr(0, end);
    if (line_.size() + data_.size() > kMaxEventBytes) {
      return absl::ResourceExhaustedError(Concat("an event has more than ", kMaxEventBytes, " bytes"));
    }
    if (end == std::string_view::npos) return absl::OkStatus();
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    BATON_RETURN_IF_ERROR(TakeLine(on_event));
  }
  return absl::OkStatus();
}

absl::Status EventStream::TakeLine(absl::FunctionRef<absl::Status(std::string_view)> on_event) {
  constexpr std::string_view kData = "data:";
  const std::string line = std::exchange(line_, {});
  if (line.empty()) {  // an empty line ends the event
    const std::string data = std::exchange(data_, {});
    return std::exchange(has_data_, false) ? on_event(data) : absl::OkStatus();
  }
  if (!line.starts_with(kData)) return absl::OkStatus();
  std::string_view value = std::string_view(line).substr(kData.size());
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (has_data_) data_ += '\n';
  data_ += value;
  has_data_ = true;
  return absl::OkStatus();
}

}  // namespace baton
