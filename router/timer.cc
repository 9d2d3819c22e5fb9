// SPDX-License-Identifier: Apache-2.0
#include "router/timer.h"

#include <grpcpp/alarm.h>

#include <utility>

#include "common/grpc.h"

namespace baton::router {

Timer::Timer() = default;
Timer::~Timer() = default;

void Timer::Start(absl::Duration delay, std::function<void()> on_time) {
  alarm_ = std::make_unique<grpc::Alarm>();
  alarm_->Set(GrpcDeadline(delay), [on_time = std::move(on_time)](bool in_time) {
    if (in_time) on_time();
  });
}

void Timer::Cancel() { alarm_.reset(); }

}  // namespace baton::router
