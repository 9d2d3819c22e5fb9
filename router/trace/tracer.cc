// SPDX-License-Identifier: Apache-2.0
#include "router/trace/tracer.h"

#include <algorithm>
#include <utility>

#include "common/strings.h"

namespace baton::router {

TraceContext Tracer::Begin(const RequestId& id, std::string_view traceparent) const {
  if (std::optional<TraceContext> given = TraceContext::Parse(traceparent)) return *std::move(given);
  const auto point = static_cast<double>(id.low >> 11) / static_cast<double>(uint64_t{1} << 53);  // in [0, 1)
  return {.trace_id = id.ToString(), .span_id = 0, .sampled = point < share_};
}

void Tracer::Add(TraceRecord trace, bool sampled) {
  const auto shared = std::make_shared<const TraceRecord>(std::move(trace));
  std::shared_ptr<const TraceRecord> dropped;  // freed without the lock
  {
    MutexLock lock(mutex_);
    recent_.push_back(shared);
    if (recent_.size() > kRecent) {
      dropped = std::move(recent_.front());
      recent_.pop_front();
    }
  }
  if (sampled && exporter_ != nullptr) exporter_->Export(shared);
}

absl::StatusOr<v1::Trace> Tracer::Find(std::string_view id) const {
  std::deque<std::shared_ptr<const TraceRecord>> recent;  // searched without the lock
  {
    MutexLock lock(mutex_);
    recent = recent_;
  }
  const auto found = std::find_if(recent.rbegin(), recent.rend(), [id](const auto& trace) {
    return id == trace->trace_id || id == trace->label || id == trace->id.ToString();
  });
  if (found != recent.rend()) return (*found)->ToMessage();
  return absl::NotFoundError(Concat("no trace of \"", id, "\": the router keeps those of the last ", kRecent,
                                    " requests, and has ", recent.size()));
}

}  // namespace baton::router
