#include "worker/control_service.h"

#include <pthread.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/clock.h"

namespace baton {
namespace {

constexpr size_t kPieceBytes = 1 << 20;
constexpr size_t kMaxWatchers = 64;
constexpr absl::Duration kMinInterval = absl::Milliseconds(10);
constexpr absl::Duration kMaxInterval = absl::Seconds(10);

// The newest status is all that a slow watcher needs.
bool KeepNewest(v1::WorkerStatus& last, v1::WorkerStatus& next) {
  last.Swap(&next);
  return true;
}

}  // namespace

ControlService::ControlService(AssetFiles assets, std::function<v1::WorkerStatus()> snapshot)
    : assets_(std::move(assets)), fingerprint_(AssetsFingerprint(assets_)), snapshot_(std::move(snapshot)) {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "status");
    Loop();
  });
}

ControlService::~ControlService() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  thread_.join();
}

void ControlService::Announce() {
  {
    MutexLock lock(mutex_);
    for (Watcher& watcher : watchers_) watcher.next = absl::InfinitePast();
  }
  wake_.NotifyAll();
}

void ControlService::EndWatches() {
  std::vector<Watcher> watchers;
  {
    MutexLock lock(mutex_);
    ended_ = true;
    watchers.swap(watchers_);
  }
  for (const Watcher& watcher : watchers) watcher.stream->Write(snapshot_(), /*last=*/true);
}

grpc::ServerWriteReactor<v1::WorkerStatus>* ControlService::WatchStatus(grpc::CallbackServerContext*,
                                                                        const v1::WatchStatusRequest* request) {
  if (request->protocol() != v1::WORKER_PROTOCOL_CURRENT) {
    return RefuseStream<v1::WorkerStatus>({grpc::StatusCode::FAILED_PRECONDITION,
                                           absl::StrCat("protocol is ", request->protocol(), ", this worker speaks ",
                                                        static_cast<int>(v1::WORKER_PROTOCOL_CURRENT))});
  }
  auto stream = std::make_shared<StatusStream>(&KeepNewest);
  {
    MutexLock lock(mutex_);
    if (ended_) return RefuseStream<v1::WorkerStatus>({grpc::StatusCode::UNAVAILABLE, "the worker stops"});
    if (watchers_.size() >= kMaxWatchers) {
      return RefuseStream<v1::WorkerStatus>({grpc::StatusCode::RESOURCE_EXHAUSTED,
                                             absl::StrCat("the status has ", kMaxWatchers, " watchers, the limit")});
    }
    const absl::Duration interval =
        std::clamp(absl::Milliseconds(request->heartbeat_interval_ms()), kMinInterval, kMaxInterval);
    watchers_.push_back({stream, interval, absl::InfinitePast()});
  }
  wake_.NotifyAll();
  return StatusStream::Serve(stream, [this, watcher = stream.get()] {
    MutexLock lock(mutex_);
    std::erase_if(watchers_, [watcher](const Watcher& w) { return w.stream.get() == watcher; });
  });
}

void ControlService::Loop() {
  for (;;) {
    std::vector<std::shared_ptr<StatusStream>> due;
    {
      MutexLock lock(mutex_);
      for (;;) {
        if (stopping_) return;
        const absl::Time now = SteadyNow();
        absl::Time next = now + absl::Seconds(60);
        for (Watcher& watcher : watchers_) {
          if (watcher.next <= now) {
            due.push_back(watcher.stream);
            watcher.next = now + watcher.interval;
          }
          next = std::min(next, watcher.next);
        }
        if (!due.empty()) break;
        wake_.WaitUntil(mutex_, absl::Now() + (next - now));
      }
    }
    const v1::WorkerStatus status = snapshot_();
    for (const std::shared_ptr<StatusStream>& stream : due) stream->Write(status, /*last=*/false);
  }
}

grpc::ServerWriteReactor<v1::ModelAssetPiece>* ControlService::GetModelAssets(
    grpc::CallbackServerContext*, const v1::GetModelAssetsRequest* request) {
  if (request->assets_fingerprint() != fingerprint_) {
    return RefuseStream<v1::ModelAssetPiece>(
        {grpc::StatusCode::NOT_FOUND, absl::StrCat("assets_fingerprint is \"", request->assets_fingerprint(),
                                                   "\", this worker has \"", fingerprint_, "\"")});
  }
  auto stream = std::make_shared<EventStream<v1::ModelAssetPiece>>();
  size_t files_left = assets_.size();
  for (const auto& [name, content] : assets_) {
    --files_left;
    std::string_view rest = content;
    do {
      v1::ModelAssetPiece piece;
      piece.set_name(name);
      piece.set_data(std::string(rest.substr(0, kPieceBytes)));
      rest.remove_prefix(piece.data().size());
      const bool last = rest.empty() && files_left == 0;
      stream->Write(std::move(piece), last);
    } while (!rest.empty());
  }
  return EventStream<v1::ModelAssetPiece>::Serve(stream, [] {});
}

}  // namespace baton
