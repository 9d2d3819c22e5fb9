// SPDX-License-Identifier: Apache-2.0
// Sends traces to an OpenTelemetry collector: OTLP over HTTP, protobuf, in batches, from a thread of its own.
//
// Never blocks a request. The queue has kMaxQueue traces; a trace that finds the queue full, and a batch that the
// collector does not take, are dropped and counted. Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/event_fd.h"
#include "common/http_post.h"
#include "common/mutex.h"
#include "common/steady_time.h"
#include "router/trace/trace_record.h"

namespace baton::router {

class RouterMetrics;

class TraceExporter {
 public:
  static constexpr size_t kMaxQueue = 2048;
  static constexpr size_t kMaxBatch = 256;

  struct Options {
    std::string endpoint;                               // http://host:port/path
    absl::Duration interval = absl::Seconds(1);         // a batch waits at most this long for more traces
    absl::Duration timeout = absl::Seconds(5);          // of sending one batch
    absl::Duration farewell = absl::Milliseconds(500);  // at the end, for what is queued
  };

  // INVALID_ARGUMENT: `endpoint` has another form. The collector need not run. `metrics` outlives the exporter.
  static absl::StatusOr<std::unique_ptr<TraceExporter>> Start(Options options, RouterMetrics& metrics);
  ~TraceExporter();

  void Export(std::shared_ptr<const TraceRecord> trace);

 private:
  using Batch = std::deque<std::shared_ptr<const TraceRecord>>;

  TraceExporter(Options options, HttpTarget target, RouterMetrics& metrics)
      : options_(std::move(options)), target_(std::move(target)), metrics_(metrics) {}
  void Run();
  Batch TakeBatch();
  void Send(const Batch& batch);
  absl::Status Post(std::string body);
  // Until `deadline`, and once the exporter stops, only for the farewell.
  absl::Duration TimeLeft(SteadyTime deadline);

  const Options options_;
  const HttpTarget target_;
  RouterMetrics& metrics_;
  std::string logged_error_;  // of the thread

  Mutex mutex_;
  CondVar changed_;
  Batch queue_ ABSL_GUARDED_BY(mutex_);
  std::optional<SteadyTime> stopping_until_ ABSL_GUARDED_BY(mutex_);  // the end of the farewell
  EventFd stop_;                                                      // ends a look-up of the collector's name
  std::thread thread_;
};

}  // namespace baton::router
