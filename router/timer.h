// SPDX-License-Identifier: Apache-2.0
// A one-shot timer on gRPC's threads.
//
// Destruction and restart cancel a pending callback but do not wait for a running callback: callbacks hold weak
// references. Not thread-safe: belongs to its owner's strand or lock.
#pragma once

#include <functional>
#include <memory>

#include "absl/time/time.h"

namespace grpc {
class Alarm;
}

namespace baton::router {

class Timer {
 public:
  Timer();
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void Start(absl::Duration delay, std::function<void()> on_time);
  void Cancel();

 private:
  std::unique_ptr<grpc::Alarm> alarm_;
};

}  // namespace baton::router
