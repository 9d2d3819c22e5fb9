#include "router/timer.h"

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>

#include <algorithm>
#include <utility>

namespace baton::router {

Timer::Timer() = default;
Timer::~Timer() = default;

void Timer::Start(absl::Duration delay, std::function<void()> on_time) {
  constexpr absl::Duration kLongest = absl::Hours(24 * 365);
  const int64_t nanos = absl::ToInt64Nanoseconds(std::clamp(delay, absl::ZeroDuration(), kLongest));
  const gpr_timespec at = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(nanos, GPR_TIMESPAN));
  alarm_ = std::make_unique<grpc::Alarm>();
  alarm_->Set(at, [on_time = std::move(on_time)](bool in_time) {
    if (in_time) on_time();
  });
}

void Timer::Cancel() { alarm_.reset(); }

}  // namespace baton::router
