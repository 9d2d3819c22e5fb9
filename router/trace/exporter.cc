// SPDX-License-Identifier: Apache-2.0
#include "router/trace/exporter.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/log.h"
#include "common/status_macros.h"
#include "common/steady_time.h"
#include "router/discovery/dns_lookup.h"
#include "router/metrics.h"
#include "router/trace/otlp.h"

namespace baton::router {
namespace {

constexpr absl::Duration kLookUpTimeout = absl::Seconds(2);

}  // namespace
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
    stopping_until_ = SteadyTime::Now() + options_.farewell;
  }
  stop_.Signal();
  changed_.NotifyAll();
  thread_.join();
}

void TraceExporter::Export(std::shared_ptr<const TraceRecord> trace) {
  MutexLock lock(mutex_);
  if (queue_.size() >= kMaxQueue) return metrics_.TracesDropped("queue", 1);
  queue_.push_back(std::move(trace));
  if (queue_.size() == kMaxBatch) changed_.NotifyAll();
}

// Waits for a full batch, the interval's end, or the end. Without a batch the exporter stops.
TraceExporter::Batch TraceExporter::TakeBatch() {
  MutexLock lock(mutex_);
  while (!stopping_until_) {
    const SteadyTime deadline = SteadyTime::Now() + options_.interval;
    while (!stopping_until_ && queue_.size() < kMaxBatch && changed_.WaitUntil(mutex_, deadline)) {
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
  for (Batch batch = TakeBatch(); !batch.empty(); batch = TakeBatch()) Send(batch);
}

absl::Duration TraceExporter::TimeLeft(SteadyTime deadline) {
  MutexLock lock(mutex_);
  return std::min(deadline, stopping_until_.value_or(deadline)) - SteadyTime::Now();
}

// Looks the name up for each batch: a collector may move. c-ares, unlike getaddrinfo, keeps to the time.
absl::Status TraceExporter::Post(std::string body) {
  const SteadyTime deadline = SteadyTime::Now() + options_.timeout;
  const WorkerSource collector{.kind = WorkerSource::Kind::kAddressRecords,
                               .entry = options_.endpoint,
                               .name = target_.address.host,
                               .port = target_.address.port};
  DnsOptions dns;
  dns.timeout = std::min(options_.timeout, kLookUpTimeout);
  BATON_ASSIGN_OR_RETURN(const std::vector<std::string> found, LookUp({&collector, 1}, dns, stop_).front());
  if (found.empty()) return absl::UnavailableError("the name has no address");
  return HttpPost(target_, found.front(), "application/x-protobuf", std::move(body),
                  [&] { return TimeLeft(deadline); });
}

void TraceExporter::Send(const Batch& batch) {
  const std::vector<std::shared_ptr<const TraceRecord>> traces(batch.begin(), batch.end());
  const absl::Status status = Post(ToOtlp(traces));
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
