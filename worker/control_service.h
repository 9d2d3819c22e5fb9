// SPDX-License-Identifier: Apache-2.0
// The WorkerControl service: streams the worker's status and its pages' names to routers, delivers the model's text
// assets, and begins changes of the worker's role.
//
// The status thread sends heartbeats, so that heartbeats never wait for compute. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "baton/v1/worker.grpc.pb.h"
#include "common/mutex.h"
#include "common/steady_time.h"
#include "engine/kv/page_journal.h"
#include "text/assets/asset_files.h"
#include "worker/event_stream.h"
#include "worker/role_machine.h"

namespace baton {

class ControlService final : public v1::WorkerControl::CallbackService {
 public:
  // Several threads call these functions, which must be quick.
  struct Sources {
    std::function<v1::WorkerStatus()> status;
    std::function<PageNews(uint64_t version)> pages;  // PagePool::NewsSince
    std::function<absl::Status(const RoleChange&)> change_role;
  };
  ControlService(AssetFiles assets, Sources sources);
  ~ControlService() override;

  // Tells all watchers at once that the state changed.
  void Announce();
  // Sends a last status and ends the streams, so that routers need not wait for a timeout.
  void EndWatches();

  grpc::ServerWriteReactor<v1::WorkerStatus>* WatchStatus(grpc::CallbackServerContext* context,
                                                          const v1::WatchStatusRequest* request) override;
  grpc::ServerWriteReactor<v1::PageNews>* WatchPages(grpc::CallbackServerContext* context,
                                                     const v1::WatchPagesRequest* request) override;
  grpc::ServerWriteReactor<v1::ModelAssetPiece>* GetModelAssets(grpc::CallbackServerContext* context,
                                                                const v1::GetModelAssetsRequest* request) override;
  grpc::ServerUnaryReactor* ChangeRole(grpc::CallbackServerContext* context, const v1::ChangeRoleRequest* request,
                                       v1::ChangeRoleResponse* response) override;

 private:
  struct Watcher {
    const void* stream = nullptr;     // identifies the watcher
    std::string_view watched;         // "status" or "pages"
    std::function<void(bool)> write;  // sends the news; true: as the last message
    absl::Duration interval;
    SteadyTime next = SteadyTime::InfinitePast();
  };

  // Calls write(stream, last) at once and then at every interval.
  template <typename Message, typename Write>
  grpc::ServerWriteReactor<Message>* Watch(std::string_view watched, uint32_t protocol, uint32_t interval_ms,
                                           std::shared_ptr<EventStream<Message>> stream, Write write);
  void Loop();

  const AssetFiles assets_;
  const std::string fingerprint_;
  const Sources sources_;
  Mutex mutex_;
  CondVar wake_;
  std::vector<Watcher> watchers_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // accepts no more watchers
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace baton
