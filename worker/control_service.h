// The WorkerControl service: streams the worker's status to routers and delivers the model's text assets.
//
// One thread of its own sends the heartbeats, so that they never wait for compute. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "baton/v1/worker.grpc.pb.h"
#include "common/mutex.h"
#include "engine/tokenizer/asset_files.h"
#include "worker/event_stream.h"

namespace baton {

class ControlService final : public v1::WorkerControl::CallbackService {
 public:
  // `snapshot` is called on several threads and must be quick.
  ControlService(AssetFiles assets, std::function<v1::WorkerStatus()> snapshot);
  ~ControlService() override;

  // The state changed: tell all watchers now.
  void Announce();
  // The worker stops: a last status, and the streams end, so that routers need not wait for a silence.
  void EndWatches();

  grpc::ServerWriteReactor<v1::WorkerStatus>* WatchStatus(grpc::CallbackServerContext* context,
                                                          const v1::WatchStatusRequest* request) override;
  grpc::ServerWriteReactor<v1::ModelAssetPiece>* GetModelAssets(grpc::CallbackServerContext* context,
                                                                const v1::GetModelAssetsRequest* request) override;

 private:
  using StatusStream = EventStream<v1::WorkerStatus>;
  struct Watcher {
    std::shared_ptr<StatusStream> stream;
    absl::Duration interval;
    absl::Time next;  // steady
  };

  void Loop();

  const AssetFiles assets_;
  const std::string fingerprint_;
  const std::function<v1::WorkerStatus()> snapshot_;
  Mutex mutex_;
  CondVar wake_;
  std::vector<Watcher> watchers_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // no more watchers
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace baton
