// SPDX-License-Identifier: Apache-2.0
// Workers behind a FakeRouter that serve pinned requests: each answer is a function of its request, and a test spoils
// the answers of some workers.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"
#include "fake_router.h"

namespace baton::testing {

// A request, as the fake worker that answers it sees it.
struct FakeRun {
  v1::GenerateRequest request = {};
  int running = 0;        // requests at the router, with this one
  bool cached = false;    // an earlier request had the same prompt and salt
  bool migrated = false;  // the sequence has moved to pin.migrate_to
};

// The public members are to be set before the first request.
class FakeDeployment {
 public:
  FakeDeployment();

  // Adds a serving worker, and pairs of it with all others of its model and numerics id.
  void AddWorker(const std::string& id, const std::string& role,
                 const std::string& numerics_id = "m-1/kv-bf16x16/x-1/tp1", const std::string& model = "m");
  CliResult Run(std::vector<std::string> arguments) const;

  FakeRouter router;
  std::function<void(const FakeRun&, v1::Chunk&)> spoil = [](const FakeRun&, v1::Chunk&) {};
  std::function<void(const FakeRun&, v1::Finish&)> spoil_finish = [](const FakeRun&, v1::Finish&) {};
  std::function<grpc::Status(const FakeRun&)> refuse = [](const FakeRun&) { return grpc::Status::OK; };
  uint32_t migrates_at = 0;  // output tokens after which a migration has succeeded; 0: as the pin says
  bool prefix_cache = true;

 private:
  grpc::Status Answer(const v1::GenerateRequest& request, grpc::ServerWriter<v1::GenerateResponse>& writer);
  FakeRun Begin(const v1::GenerateRequest& request);

  Mutex mutex_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<std::string> seen_ ABSL_GUARDED_BY(mutex_);  // prompts with their salts
};

}  // namespace baton::testing
