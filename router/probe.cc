// SPDX-License-Identifier: Apache-2.0
#include "router/probe.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/steady_time.h"
#include "router/request_run.h"

namespace baton::router {
namespace {

constexpr int kOutputTokens = 2;

class PinnedPlacer : public Placer {
 public:
  explicit PinnedPlacer(Placement placement) : placement_(std::move(placement)) {}

  PlacementResult Place(const PlacementQuery& query) override {
    if (query.avoid.empty()) return {PlacementResult::Kind::kPlaced, placement_, ""};
    return {PlacementResult::Kind::kOnlyAvoided, {}, "the pair did not take the probe"};
  }
  // The probe's own failure says it already.
  void PairBroken(uint64_t /*pair*/, const std::string& /*why*/) override {}
  // A probe moves too little to measure the path.
  void HandedOver(uint64_t /*pair*/, const v1::HandedOver& /*measured*/) override {}

 private:
  const Placement placement_;
};

class ProbeSink : public ResponseSink {
 public:
  explicit ProbeSink(std::function<void(absl::Status)> done) : done_(std::move(done)) {}

  void OnChunk(v1::Chunk /*chunk*/) override {}
  void OnFinish(v1::Finish finish) override {
    const uint32_t tokens = finish.usage().completion_tokens();
    done_(tokens == kOutputTokens
              ? absl::OkStatus()
              : absl::InternalError(absl::StrCat("the probe got ", tokens, " tokens, expected ", kOutputTokens)));
  }
  void OnFail(const absl::Status& status, absl::Duration /*retry_after*/) override { done_(status); }

 private:
  const std::function<void(absl::Status)> done_;
};

}  // namespace

void ProbePair(const Placement& placement, std::shared_ptr<const ModelAssets> assets, absl::Duration timeout,
               std::function<void(absl::Status)> done) {
  RequestRun::Options options;
  options.spec.model = placement.model;
  options.spec.assets_fingerprint = assets->fingerprint;
  options.spec.prompt = {0, 0};
  // No stop tokens: whatever the model says, it says two tokens. Temperature 0: greedy.
  options.spec.sampling.set_top_p(1);
  options.spec.sampling.set_repetition_penalty(1);
  options.spec.sampling.set_max_tokens(kOutputTokens);
  options.is_probe = true;
  options.assets = std::move(assets);
  options.retry.max_attempts = 1;
  options.retry.overload_wait = absl::ZeroDuration();
  options.retry.placement_wait = absl::ZeroDuration();
  options.received = SteadyTime::Now();
  options.arrival = absl::Now();
  options.timeout = timeout;
  options.placer = std::make_shared<PinnedPlacer>(placement);
  options.sink = std::make_shared<ProbeSink>(std::move(done));
  RequestRun::Start(std::move(options));
}

}  // namespace baton::router
