// SPDX-License-Identifier: Apache-2.0
// The router's traces: keeps those of the requests that ended last, and sends the sampled ones to a collector.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "baton/v1/inference.pb.h"
#include "common/ids.h"
#include "common/mutex.h"
#include "common/trace_context.h"
#include "router/trace/exporter.h"
#include "router/trace/trace_record.h"

namespace baton::router {

class Tracer {
 public:
  static constexpr size_t kRecent = 512;

  // `share` of the requests without a sampled flag of their own is sampled. `exporter` may be null.
  Tracer(double share, std::unique_ptr<TraceExporter> exporter) : share_(share), exporter_(std::move(exporter)) {}

  // `traceparent` is the client's header, or empty. If the header has a trace, its flag decides; otherwise the trace id
  // is the request id, and the id decides.
  TraceContext Begin(const RequestId& id, std::string_view traceparent) const;
  void Add(TraceRecord trace, bool sampled);
  // By request id, trace id or label, the latest first. NOT_FOUND says how many traces are kept.
  absl::StatusOr<v1::Trace> Find(std::string_view id) const;

 private:
  const double share_;
  const std::unique_ptr<TraceExporter> exporter_;
  mutable Mutex mutex_;
  std::deque<std::shared_ptr<const TraceRecord>> recent_ ABSL_GUARDED_BY(mutex_);  // the latest last
};

}  // namespace baton::router
