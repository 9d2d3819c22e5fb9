// SPDX-License-Identifier: Apache-2.0
#include "cli/load/grpc_target.h"

#include <grpcpp/support/status.h>

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cli/client.h"
#include "common/grpc.h"

namespace baton {
namespace {

v1::GenerateRequest ToProto(const LoadRequest& request) {
  v1::GenerateRequest proto;
  proto.set_model(request.model);
  if (!request.cache_salt.empty()) proto.set_cache_salt(request.cache_salt);
  proto.mutable_token_ids()->mutable_ids()->Add(request.prompt.begin(), request.prompt.end());
  v1::SamplingParams& sampling = *proto.mutable_sampling();
  sampling.set_temperature(0);
  sampling.set_max_tokens(static_cast<uint32_t>(request.output_tokens));
  sampling.set_ignore_eos(true);
  return proto;
}

}  // namespace

// One request. `running_` holds it until its stream has ended.
class GrpcTarget::Call final : public grpc::ClientReadReactor<v1::GenerateResponse>,
                               public std::enable_shared_from_this<Call> {
 public:
  Call(v1::GenerateRequest request, SteadyTime deadline, std::shared_ptr<RequestObserver> observer, GrpcTarget& target)
      : request_(std::move(request)), observer_(std::move(observer)), target_(target) {
    context_.set_deadline(GrpcDeadline(deadline - SteadyTime::Now()));
  }

  void Start(v1::Inference::Stub& stub) {
    stub.async()->Generate(&context_, &request_, this);
    StartRead(&response_);
    StartCall();
  }

  void Cancel() { context_.TryCancel(); }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    const SteadyTime now = SteadyTime::Now();
    const auto& ids = response_.chunk().token_ids();
    if (!ids.empty()) {
      end_.arrivals.push_back({.at = now, .tokens = ids.size()});
      end_.answer.insert(end_.answer.end(), ids.begin(), ids.end());
      observer_->OnTokens(now, ids.size());
    }
    if (response_.has_finish()) {
      has_finish_ = true;
      end_.prompt_tokens = response_.finish().usage().prompt_tokens();
      end_.cached_tokens = response_.finish().usage().cached_prompt_tokens();
    }
    StartRead(&response_);
  }

  void OnDone(const grpc::Status& status) override {
    if (!IsComplete(has_finish_, status)) {
      end_.error = absl::StatusCodeToString(static_cast<absl::StatusCode>(status.error_code()));
      end_.reason = Reason(status, "--timeout");
    }
    end_.at = SteadyTime::Now();
    const std::shared_ptr<Call> self = shared_from_this();
    {
      MutexLock lock(target_.mutex_);
      target_.running_.erase(self);
    }
    observer_->OnEnd(std::move(end_));  // the target may be gone afterwards
  }

 private:
  const v1::GenerateRequest request_;
  const std::shared_ptr<RequestObserver> observer_;
  GrpcTarget& target_;
  grpc::ClientContext context_;
  v1::GenerateResponse response_;
  bool has_finish_ = false;
  RequestEnd end_;
};

void GrpcTarget::Start(LoadRequest request, SteadyTime deadline, std::shared_ptr<RequestObserver> observer) {
  const auto call = std::make_shared<Call>(ToProto(request), deadline, std::move(observer), *this);
  {
    MutexLock lock(mutex_);
    running_.insert(call);
  }
  call->Start(client_.inference());
}

void GrpcTarget::CancelAll() {
  std::vector<std::shared_ptr<Call>> running;
  {
    MutexLock lock(mutex_);
    running.assign(running_.begin(), running_.end());
  }
  // Without the lock: Cancel may run the call's OnDone on this thread, and OnDone takes the lock.
  for (const std::shared_ptr<Call>& call : running) call->Cancel();
}

}  // namespace baton
