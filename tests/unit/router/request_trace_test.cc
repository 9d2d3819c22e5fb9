// SPDX-License-Identifier: Apache-2.0
#include "router/trace/request_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "otlp/trace.pb.h"
#include "router/trace/otlp.h"

namespace baton::router {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr absl::Time kArrival = absl::FromUnixSeconds(1000);

class RequestTraceTest : public ::testing::Test {
 protected:
  static RequestTrace::Start Beginning() {
    return {.context = {.trace_id = std::string(32, 'a'), .span_id = 7, .sampled = true},
            .id = {.high = 1, .low = 2},
            .label = "l",
            .received = SteadyTime(),
            .arrival = kArrival};
  }
  static SteadyTime At(int milliseconds) { return SteadyTime() + absl::Milliseconds(milliseconds); }
  static Placement Pair() {
    Placement placement;
    placement.prefill.key.id = "p0";
    placement.decode.key.id = "d0";
    placement.estimates = "p0+d0 0.0100";
    return placement;
  }
  void PlaceAttempt(int since, int at, uint32_t attempt = 1) {
    trace_.OnPlacing(At(since));
    traceparent_ = trace_.OnPlaced(At(at), attempt, Pair());
  }
  void PrefillStarted(int at) {
    v1::PrefillEvent event;
    event.mutable_started();
    trace_.OnPrefillEvent(At(at), 1, event);
  }
  void DecodeStarted(int at) {
    v1::DecodeEvent event;
    event.mutable_started();
    trace_.OnDecodeEvent(At(at), 1, event);
  }
  // "name process start-end" in milliseconds since the arrival.
  static std::vector<std::string> Lines(const v1::Trace& trace) {
    std::vector<std::string> lines;
    const auto since = [](uint64_t nanos) {
      return absl::ToInt64Milliseconds(absl::FromUnixNanos(static_cast<int64_t>(nanos)) - kArrival);
    };
    for (const v1::TraceSpan& span : trace.spans()) {
      lines.push_back(absl::StrCat(span.name(), " ", span.process(), " ", since(span.start_unix_nanos()), "-",
                                   since(span.end_unix_nanos()), span.error().empty() ? "" : " ", span.error()));
    }
    return lines;
  }
  static const v1::TraceSpan& Find(const v1::Trace& trace, const std::string& name) {
    for (const v1::TraceSpan& span : trace.spans()) {
      if (span.name() == name) return span;
    }
    return v1::TraceSpan::default_instance();
  }
  static std::string Attribute(const v1::TraceSpan& span, const std::string& key) {
    for (const v1::TraceAttribute& attribute : span.attributes()) {
      if (attribute.key() == key) return absl::StrCat(attribute.text(), attribute.number());
    }
    return "none";
  }

  RequestTrace trace_{Beginning()};
  std::string traceparent_;
};

TEST_F(RequestTraceTest, AHandoffHasEachStageOnTheProcessThatDidIt) {
  trace_.Tokenized(At(0), At(1), 40);
  PlaceAttempt(1, 2);
  PrefillStarted(5);
  v1::PrefillEvent handed_over;
  handed_over.mutable_handed_over()->set_prefill_seconds(0.020);
  handed_over.mutable_handed_over()->set_transfer_seconds(0.010);
  handed_over.mutable_handed_over()->set_kv_bytes(123);
  for (const double start : {0.0, 0.008}) {
    v1::PromptChunk& chunk = *handed_over.mutable_handed_over()->add_chunks();
    chunk.set_tokens(20);
    chunk.set_start_seconds(start);
    chunk.set_seconds(0.008);
  }
  DecodeStarted(27);
  trace_.OnPrefillEvent(At(28), 1, handed_over);
  v1::DecodeEvent tokens;
  tokens.mutable_tokens()->add_tokens();
  tokens.mutable_tokens()->add_tokens();
  trace_.OnDecodeEvent(At(30), 1, tokens);
  trace_.OnAttemptEnded(At(40), 1, "");
  const v1::Trace trace = trace_.End(At(41), "").ToMessage();
  EXPECT_THAT(Lines(trace), ElementsAre("request router 0-41", "tokenize router 0-1", "place router 1-2",
                                        "attempt router 2-40", "queue p0 2-5", "prefill p0 5-25", "chunk p0 5-13",
                                        "chunk p0 13-21", "transfer p0 18-28", "decode d0 27-40"));
  EXPECT_EQ(Attribute(Find(trace, "transfer"), "baton.kv_bytes"), "123");
  EXPECT_EQ(Attribute(Find(trace, "decode"), "baton.tokens"), "2");
  EXPECT_EQ(Attribute(Find(trace, "place"), "baton.placement.estimates"), "p0+d0 0.01000");
  EXPECT_EQ(trace.request_id(), "00000000000000010000000000000002");
  EXPECT_EQ(trace.request_label(), "l");
}

TEST_F(RequestTraceTest, SpansFormATreeBelowTheClientsSpan) {
  PlaceAttempt(0, 1);
  PrefillStarted(2);
  const v1::Trace trace = trace_.End(At(9), "").ToMessage();
  EXPECT_EQ(Find(trace, "request").parent_span_id(), 7u);
  EXPECT_EQ(Find(trace, "place").parent_span_id(), Find(trace, "request").span_id());
  EXPECT_EQ(Find(trace, "attempt").parent_span_id(), Find(trace, "request").span_id());
  EXPECT_EQ(Find(trace, "queue").parent_span_id(), Find(trace, "attempt").span_id());
  const std::optional<TraceContext> sent = TraceContext::Parse(traceparent_);
  ASSERT_TRUE(sent.has_value());
  EXPECT_EQ(sent->trace_id, std::string(32, 'a'));
  EXPECT_EQ(sent->span_id, Find(trace, "attempt").span_id());
  EXPECT_TRUE(sent->sampled);
}

TEST_F(RequestTraceTest, ALocalPromptIsCountedBackFromTheStartOfDecoding) {
  PlaceAttempt(0, 1);
  v1::DecodeEvent started;
  started.mutable_started()->set_prefill_seconds(0.010);
  started.mutable_started()->set_queue_seconds(0.004);
  trace_.OnDecodeEvent(At(20), 1, started);
  const v1::Trace trace = trace_.End(At(30), "").ToMessage();
  EXPECT_THAT(Lines(trace), ElementsAre("request router 0-30", "place router 0-1", "attempt router 1-30",
                                        "queue d0 6-10", "prefill d0 10-20", "decode d0 20-30"));
}

TEST_F(RequestTraceTest, AFailedAttemptSaysWhyAndTheNextOneWaitsToBePlaced) {
  PlaceAttempt(0, 1);
  PrefillStarted(3);
  trace_.OnAttemptEnded(At(9), 1, "prefill_lost");
  trace_.OnPlacing(At(9));
  trace_.OnPlacing(At(15));  // the first look found no pair
  trace_.OnPlaced(At(16), 2, Pair());
  trace_.OnAttemptEnded(At(30), 2, "");
  EXPECT_THAT(Lines(trace_.End(At(31), "").ToMessage()),
              ElementsAre("request router 0-31", "place router 0-1", "attempt router 1-9 prefill_lost", "queue p0 1-3",
                          "prefill p0 3-9", "place router 9-16", "attempt router 16-30"));
}

TEST_F(RequestTraceTest, ARequestThatFoundNoWorkerEndsWithItsPlacing) {
  trace_.OnPlacing(At(2));
  EXPECT_THAT(Lines(trace_.End(At(12), "UNAVAILABLE").ToMessage()),
              ElementsAre("request router 0-12 UNAVAILABLE", "place router 2-12"));
}

TEST_F(RequestTraceTest, EventsOfAnEndedAttemptCountForNothing) {
  PlaceAttempt(0, 1);
  trace_.OnAttemptEnded(At(2), 1, "");
  PrefillStarted(3);
  DecodeStarted(4);
  trace_.OnAttemptEnded(At(5), 1, "late");
  EXPECT_THAT(Lines(trace_.End(At(6), "").ToMessage()),
              ElementsAre("request router 0-6", "place router 0-1", "attempt router 1-2"));
}

TEST_F(RequestTraceTest, TheNumberOfSpansIsBounded) {
  for (uint32_t attempt = 1; attempt < 1000; ++attempt) {
    PlaceAttempt(1, 2, attempt);
    trace_.OnAttemptEnded(At(3), attempt, "");
  }
  const v1::Trace trace = trace_.End(At(4), "").ToMessage();
  EXPECT_EQ(trace.spans_size(), 512);
  EXPECT_EQ(trace.spans(0).attributes_size(), 0) << "those of lost spans are lost";
}

TEST_F(RequestTraceTest, OtlpHasAResourceForEachProcess) {
  PlaceAttempt(0, 1);
  PrefillStarted(3);
  trace_.Note("gen_ai.usage.input_tokens", 5);
  trace_.Note("baton.ttft_seconds", 0.5);
  const auto trace = std::make_shared<const TraceRecord>(trace_.End(At(9), "CANCELLED"));
  otlp::ExportTraceServiceRequest request;
  ASSERT_TRUE(request.ParseFromString(ToOtlp({&trace, 1})));
  std::vector<std::string> instances;
  for (const otlp::ResourceSpans& resource : request.resource_spans()) {
    std::string name;
    for (const otlp::KeyValue& attribute : resource.resource().attributes()) {
      if (attribute.key() != "service.version") absl::StrAppend(&name, "/", attribute.value().string_value());
    }
    for (const otlp::Span& span : resource.scope_spans(0).spans()) absl::StrAppend(&name, " ", span.name());
    instances.push_back(name);
  }
  EXPECT_THAT(instances, UnorderedElementsAre("/baton-router request place attempt", "/baton-worker/p0 queue prefill"));
  for (const otlp::ResourceSpans& resource : request.resource_spans()) {
    for (const otlp::Span& span : resource.scope_spans(0).spans()) {
      EXPECT_EQ(span.trace_id(), std::string(16, '\xaa'));
      EXPECT_EQ(span.span_id().size(), 8u);
      EXPECT_EQ(span.parent_span_id().size(), 8u);
      EXPECT_EQ(span.kind(), span.name() == "request" ? otlp::Span::KIND_SERVER : otlp::Span::KIND_INTERNAL);
      EXPECT_EQ(span.status().code() == otlp::Status::CODE_ERROR, span.name() == "request" || span.name() == "attempt");
      EXPECT_GE(span.start_time_unix_nano(), static_cast<uint64_t>(absl::ToUnixNanos(kArrival)));
    }
  }
}

}  // namespace
}  // namespace baton::router
