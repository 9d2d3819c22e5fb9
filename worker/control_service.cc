// SPDX-License-Identifier: Apache-2.0
#include "worker/control_service.h"

#include <pthread.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/grpc.h"
#include "common/steady_time.h"
#include "worker/attempt.h"

namespace baton {
namespace {

constexpr size_t kPieceBytes = 1 << 20;
constexpr size_t kMaxReasonBytes = 256;
constexpr ptrdiff_t kMaxWatchers = 64;  // of each kind
constexpr absl::Duration kMinInterval = absl::Milliseconds(10);
constexpr absl::Duration kMaxInterval = absl::Seconds(10);

// The newest status is all that a slow watcher needs.
bool KeepNewest(v1::WorkerStatus& last, v1::WorkerStatus& next) {
  last.Swap(&next);
  return true;
}

v1::PageNews ToMessage(const PageNews& news) {
  v1::PageNews message;
  message.set_whole(news.whole);
  for (const PageHash& name : news.added) message.add_added(ToKey(name));
  for (const PageHash& name : news.removed) message.add_removed(ToKey(name));
  return message;
}

// Returns the characters of `utf8` that fit whole into `bytes`.
std::string CutToFit(std::string_view utf8, size_t bytes) {
  if (utf8.size() <= bytes) return std::string(utf8);
  const auto is_inside = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; };
  while (bytes > 0 && is_inside(utf8[bytes])) --bytes;
  return std::string(utf8.substr(0, bytes));
}

}  // namespace

ControlService::ControlService(AssetFiles assets, Sources sources)
    : assets_(std::move(assets)), fingerprint_(AssetsFingerprint(assets_)), sources_(std::move(sources)) {
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
    for (Watcher& watcher : watchers_) watcher.next = SteadyTime::InfinitePast();
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
  for (const Watcher& watcher : watchers) watcher.write(/*last=*/true);
}

template <typename Message, typename Write>
grpc::ServerWriteReactor<Message>* ControlService::Watch(std::string_view watched, uint32_t protocol,
                                                         uint32_t interval_ms,
                                                         std::shared_ptr<EventStream<Message>> stream, Write write) {
  if (const absl::Status same = CheckProtocol(protocol); !same.ok()) return RefuseStream<Message>(ToGrpc(same));
  {
    MutexLock lock(mutex_);
    if (ended_) return RefuseStream<Message>({grpc::StatusCode::UNAVAILABLE, "the worker stops"});
    const auto same = [&](const Watcher& watcher) { return watcher.watched == watched; };
    if (std::count_if(watchers_.begin(), watchers_.end(), same) >= kMaxWatchers) {
      return RefuseStream<Message>(
          {grpc::StatusCode::RESOURCE_EXHAUSTED,
           absl::StrCat("the ", std::string(watched), " has ", kMaxWatchers, " watchers, the limit")});
    }
    const absl::Duration interval = std::clamp(absl::Milliseconds(interval_ms), kMinInterval, kMaxInterval);
    watchers_.push_back({stream.get(), watched, [stream, write](bool last) { write(*stream, last); }, interval});
  }
  wake_.NotifyAll();
  return EventStream<Message>::Serve(stream, [this, id = stream.get()] {
    MutexLock lock(mutex_);
    std::erase_if(watchers_, [id](const Watcher& watcher) { return watcher.stream == id; });
  });
}

grpc::ServerWriteReactor<v1::WorkerStatus>* ControlService::WatchStatus(grpc::CallbackServerContext*,
                                                                        const v1::WatchStatusRequest* request) {
  return Watch("status", request->protocol(), request->heartbeat_interval_ms(),
               std::make_shared<EventStream<v1::WorkerStatus>>(&KeepNewest),
               [this](EventStream<v1::WorkerStatus>& stream, bool last) { stream.Write(sources_.status(), last); });
}

grpc::ServerWriteReactor<v1::PageNews>* ControlService::WatchPages(grpc::CallbackServerContext*,
                                                                   const v1::WatchPagesRequest* request) {
  // Belongs to the status thread.
  const auto version = std::make_shared<uint64_t>(0);
  return Watch("pages", request->protocol(), request->interval_ms(), std::make_shared<EventStream<v1::PageNews>>(),
               [this, version](EventStream<v1::PageNews>& stream, bool last) {
                 if (last) return stream.Write({}, last);
                 if (!stream.idle()) return;  // a slow watcher gets the changes later, in one message
                 const PageNews news = sources_.pages(*version);
                 if (std::exchange(*version, news.version) != news.version) stream.Write(ToMessage(news), last);
               });
}

void ControlService::Loop() {
  for (;;) {
    std::vector<std::function<void(bool)>> due;
    {
      MutexLock lock(mutex_);
      for (;;) {
        if (stopping_) return;
        const SteadyTime now = SteadyTime::Now();
        SteadyTime next = now + absl::Seconds(60);
        for (Watcher& watcher : watchers_) {
          if (watcher.next <= now) {
            due.push_back(watcher.write);
            watcher.next = now + watcher.interval;
          }
          next = std::min(next, watcher.next);
        }
        if (!due.empty()) break;
        wake_.WaitUntil(mutex_, next);
      }
    }
    for (const std::function<void(bool)>& write : due) write(/*last=*/false);
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

grpc::ServerUnaryReactor* ControlService::ChangeRole(grpc::CallbackServerContext* context,
                                                     const v1::ChangeRoleRequest* request, v1::ChangeRoleResponse*) {
  absl::Status status = CheckProtocol(request->protocol());
  if (status.ok()) {
    status = sources_.change_role({.from = request->from(),
                                   .to = request->to(),
                                   .force = request->force(),
                                   .reason = CutToFit(request->reason(), kMaxReasonBytes)});
  }
  if (status.ok()) Announce();
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace baton
