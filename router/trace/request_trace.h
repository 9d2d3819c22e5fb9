// SPDX-License-Identifier: Apache-2.0
// Collects the stages of one request as spans, from what the router sees and from the times that workers report.
//
//   span       from -> to                                                     process
//   request    arrival -> end                                                 router
//   tokenize   chat template and tokenizer                                    router
//   place      an attempt is wanted -> its workers are chosen                 router
//   attempt    the decode call is opened -> the attempt ends                  router
//   queue      the attempt is opened -> the first step of its prompt          the worker that computes the prompt
//   prefill    the first step -> the first token; a chunk span for each step  the worker that computes the prompt
//   transfer   the first KV page leaves -> the decode worker has all          the worker that hands over
//   decode     the decode worker has the sequence -> the attempt ends         decode worker
//
// Workers report durations only, and the router counts them back from the arrival of the report: no two clocks are
// compared. A message's way through the network is the error.
//
// Not thread-safe: belongs to the request's strand.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/time/time.h"
#include "baton/v1/inference.pb.h"
#include "baton/v1/worker.pb.h"
#include "common/ids.h"
#include "common/steady_time.h"
#include "common/trace_context.h"
#include "router/placer.h"
#include "router/trace/trace_record.h"

namespace baton::router {

class RequestTrace {
 public:
  struct Start {
    TraceContext context;  // the client's span, or span_id 0: a trace of the router's own
    RequestId id;
    std::string label;
    SteadyTime received;
    absl::Time arrival;  // the date of `received`
  };
  explicit RequestTrace(Start start);

  bool sampled() const { return sampled_; }
  const std::string& trace_id() const { return record_.trace_id; }
  // Adds to the span of the whole request. `key` is a literal.
  template <typename Value>
  void Note(std::string_view key, Value&& value) {
    AddAttribute(kRoot, key, std::forward<Value>(value));
  }

  void Tokenized(SteadyTime from, SteadyTime to, size_t tokens);
  // An attempt is wanted. Later calls before OnPlaced count for the same placement.
  void OnPlacing(SteadyTime now);
  // The attempt opens. Returns what its workers get as traceparent.
  std::string OnPlaced(SteadyTime now, uint32_t attempt, const Placement& placement);
  void OnPrefillEvent(SteadyTime now, uint32_t attempt, const v1::PrefillEvent& event);
  void OnDecodeEvent(SteadyTime now, uint32_t attempt, const v1::DecodeEvent& event);
  // `error` is empty for success.
  void OnAttemptEnded(SteadyTime now, uint32_t attempt, std::string_view error);
  // Ends all spans that are open. The trace is empty afterwards.
  TraceRecord End(SteadyTime now, std::string_view error);

 private:
  static constexpr uint32_t kRoot = 0;    // the span of the whole request
  static constexpr uint32_t kRouter = 0;  // the process of the router's own spans

  struct Attempt {
    std::optional<uint32_t> span;  // none: there are too many spans
    uint32_t prefill_worker = 0;   // a process: the prefill worker, or the worker that hands over
    uint32_t decode_worker = 0;    // a process
    SteadyTime opened;
    std::optional<SteadyTime> prefill_started;
    std::optional<SteadyTime> decode_started;
    uint64_t decoded_tokens = 0;
  };

  uint32_t ProcessOf(const std::string& worker);
  // Adds a span below `parent`; below the whole request, if `parent` is none. Returns its index. None: there are too
  // many spans.
  std::optional<uint32_t> AddSpan(std::string_view name, uint32_t process, std::optional<uint32_t> parent,
                                  SteadyTime from, SteadyTime to, uint32_t attempt = 0);
  void AddPrefill(const Attempt& attempt, uint32_t number, uint32_t worker, SteadyTime from, SteadyTime to,
                  const google::protobuf::RepeatedPtrField<v1::PromptChunk>& chunks);
  // Does nothing if `span` is none.
  template <typename Value>
  void AddAttribute(std::optional<uint32_t> span, std::string_view key, Value&& value) {
    if (!span) return;
    if constexpr (std::is_integral_v<std::remove_cvref_t<Value>>) {
      record_.attributes.push_back({*span, key, static_cast<int64_t>(value)});
    } else {
      record_.attributes.push_back({*span, key, std::forward<Value>(value)});
    }
  }

  const bool sampled_;
  TraceRecord record_;
  std::map<uint32_t, Attempt> attempts_;  // open ones
  std::optional<SteadyTime> placing_since_;
};

}  // namespace baton::router
