// SPDX-License-Identifier: Apache-2.0
#include "common/trace_context.h"

#include <gtest/gtest.h>

#include "common/strings.h"

namespace baton {
namespace {

constexpr std::string_view kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr std::string_view kSpan = "00f067aa0ba902b7";

TEST(TraceContextTest, ReadsAndWritesTheStandardsExample) {
  const std::string header = Concat("00-", kTrace, "-", kSpan, "-01");
  const std::optional<TraceContext> context = TraceContext::Parse(header);
  ASSERT_TRUE(context.has_value());
  EXPECT_EQ(context->trace_id, kTrace);
  EXPECT_EQ(context->span_id, 0x00f067aa0ba902b7u);
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(context->Format(), header);
}

TEST(TraceContextTest, OnlyTheLastFlagSaysSampled) {
  EXPECT_FALSE(TraceContext::Parse(Concat("00-", kTrace, "-", kSpan, "-00"))->sampled);
  EXPECT_FALSE(TraceContext::Parse(Concat("00-", kTrace, "-", kSpan, "-fe"))->sampled);
  EXPECT_TRUE(TraceContext::Parse(Concat("00-", kTrace, "-", kSpan, "-ff"))->sampled);
}

TEST(TraceContextTest, ALaterVersionMayHaveMoreFields) {
  EXPECT_TRUE(TraceContext::Parse(Concat("01-", kTrace, "-", kSpan, "-01-more")).has_value());
  EXPECT_TRUE(TraceContext::Parse(Concat("cc-", kTrace, "-", kSpan, "-01")).has_value());
}

TEST(TraceContextTest, OtherTextsStartNoTrace) {
  const std::string zeros(32, '0');
  for (const std::string& text :
       {std::string(), std::string("00"), Concat("ff-", kTrace, "-", kSpan, "-01"),
        Concat("00-", kTrace, "-", kSpan, "-01-more"), Concat("01-", kTrace, "-", kSpan, "-01more"),
        Concat("00-", zeros, "-", kSpan, "-01"), Concat("00-", kTrace, "-0000000000000000-01"),
        Concat("00-", "4BF92F3577B34DA6A3CE929D0E0E4736", "-", kSpan, "-01"), Concat("00_", kTrace, "-", kSpan, "-01"),
        Concat("00-", kTrace, "_", kSpan, "-01"), Concat("00-", kTrace, "-", kSpan, "_01"),
        Concat("00-", kTrace, "-", kSpan, "-0"), Concat("00-", kTrace, "-", kSpan, "-0x"),
        Concat("0g-", kTrace, "-", kSpan, "-01")}) {
    EXPECT_FALSE(TraceContext::Parse(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace baton
