// SPDX-License-Identifier: Apache-2.0
// Sends load to a Baton router. The calls run on gRPC's callback threads. Thread-safe.
#pragma once

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "cli/load/load_target.h"
#include "common/mutex.h"

namespace baton {

class Client;

class GrpcTarget final : public LoadTarget {
 public:
  // `client` must outlive the target.
  explicit GrpcTarget(Client& client) : client_(client) {}

  void Start(LoadRequest request, SteadyTime deadline, std::shared_ptr<RequestObserver> observer) override;
  void CancelAll() override;

 private:
  class Call;

  Client& client_;
  Mutex mutex_;
  absl::flat_hash_set<std::shared_ptr<Call>> running_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton
