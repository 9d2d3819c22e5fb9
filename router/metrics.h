// SPDX-License-Identifier: Apache-2.0
// The router's metrics. Labels are model, role and small enumerations, never request ids.
//
// Thread-safe. Registered once per process.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "baton/v1/inference.pb.h"
#include "common/metrics.h"
#include "common/mutex.h"
#include "common/outcome.h"
#include "router/request_spec.h"

namespace baton::router {

class RouterMetrics {
 public:
  explicit RouterMetrics(prometheus::Registry& registry);
  ~RouterMetrics();

  void Queued(const std::string& model, absl::Duration waited);
  void FirstToken(const std::string& model, absl::Duration since_received);
  // Counts `tokens` gaps of gap / tokens: one message, `gap` after the message before, brought at least one token.
  void NextTokens(const std::string& model, int tokens, absl::Duration gap);
  void Finished(const std::string& model, const v1::Usage& usage, const v1::Timings& timings);
  // Call once per request. `outcome`: stop, length, or the name of a status code. For a request refused before its
  // model is known, `model` is empty and no duration is counted.
  void RequestEnded(const std::string& model, std::string_view outcome, absl::Duration total);
  // Call once per request with objectives that finished or failed. A request without one of the two meets that one.
  void ObjectivesKnown(const std::string& model, bool ttft_met, bool tpot_met);
  // Call once per late request, at its end, with what was done: the request was refused, or served with priority batch.
  void Late(const std::string& model, WhenLate treatment);
  // `local`: the decode worker computes the prompt. `cached_tokens`: the worker's estimated cached tokens of the
  // prompt.
  void Placed(const std::string& model, bool local, uint32_t cached_tokens);
  void AttemptEnded(const std::string& model, Cause cause);
  // Tokens come again, `pause` after an attempt ended with cause `after`.
  void Resumed(const std::string& model, Cause after, absl::Duration pause);
  void TokenDisagreement(const std::string& model);

  // Sampled traces that the collector took, or that were dropped. `reason`: queue or collector.
  void TracesExported(size_t count);
  void TracesDropped(const char* reason, size_t count);

  void SetMaxRequests(size_t count);
  void SetRunningRequests(size_t count);
  void SetWorkers(const std::map<std::string, int>& count_by_state);
  void SetReadyPairs(size_t count);
  // Of the model's workers of `role`, prefill or decode.
  void SetBalance(const std::string& model, const char* role, int wanted_workers, double pressure);
  // The balance controller asked a worker to take `role`. `taken`: the worker has begun.
  void RoleSwitched(const std::string& model, const std::string& role, bool taken);

 private:
  struct Families;
  struct OfModel;

  OfModel& Of(const std::string& model);

  const std::unique_ptr<Families> families_;
  Mutex mutex_;
  std::map<std::string, std::unique_ptr<OfModel>> models_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::router
