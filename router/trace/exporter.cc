// SPDX-License-Identifier: Apache-2.0
#include "router/trace/exporter.h"

#include <optional>
#include <utility>
#include <vector>

#include "common/log.h"
#include "common/status_macros.h"
#include "common/steady_time.h"
#include "router/metrics.h"
#include "router/trace/otlp.h"

namespace baton::router {
absl::StatusOr<std::unique_ptr<TraceExporter>> TraceExporter::Start(Options options, RouterMetrics& metrics) {
  BATON_ASSIGN_OR_RETURN(HttpTarget target, ParseHttpTarget(options.endpoint));
  std::unique_ptr<TraceExporter> exporter(new TraceExporter(std::move(options), std::move(target), metrics));
  exporter->thread_ = std::thread([self = exporter.get()] { self->Run(); });
  return exporter;
}

TraceExporter::~TraceExporter() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void TraceExporter::Export(std::shared_ptr<const v1::Trace> trace) {
  MutexLock lock(mutex_);
  if (queue_.size() >= kMaxQueue) return metrics_.TracesDropped("queue", 1);
  queue_.push_back(std::move(trace));
  if (queue_.size() == kMaxBatch) changed_.NotifyAll();
}

// Waits for a full batch, the interval's end, or the end. Without a batch the exporter stops.
TraceExporter::Batch TraceExporter::TakeBatch() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    const SteadyTime deadline = SteadyTime::Now() + options_.interval;
    while (!stopping_ && queue_.size() < kMaxBatch && changed_.WaitUntil(mutex_, deadline)) {
    }
    if (!queue_.empty()) break;
  }
  Batch batch;
  while (!queue_.empty() && batch.size() < kMaxBatch) {
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return batch;
}

void TraceExporter::Run() {
  pthread_setname_np(pthread_self(), "traces");
  std::optional<SteadyTime> farewell;
  for (Batch batch = TakeBatch(); !batch.empty(); batch = TakeBatch()) {
    {
      MutexLock lock(mutex_);
      if (stopping_ && !farewell) farewell = SteadyTime::Now() + options_.farewell;
    }
    Send(batch, farewell ? *farewell - SteadyTime::Now() : options_.timeout);
  }
}

void TraceExporter::Send(const Batch& batch, absl::Duration timeout) {
  const std::vector<std::shared_ptr<const v1::Trace>> traces(batch.begin(), batch.end());
  const absl::Status status = HttpPost(target_, "application/x-protobuf", ToOtlp(traces), timeout);
  if (status.ok()) {
    metrics_.TracesExported(batch.size());
  } else {
    metrics_.TracesDropped("collector", batch.size());
  }
  std::string error = status.ok() ? "" : std::string(status.message());
  if (error == logged_error_) return;
  Log(status.ok() ? LogLevel::kInfo : LogLevel::kWarning, status.ok() ? "traces.sent_again" : "traces.dropped",
      {{"endpoint", options_.endpoint}, {"detail", error}});
  logged_error_ = std::move(error);
}

}  // namespace baton::router
