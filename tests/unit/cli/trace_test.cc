// SPDX-License-Identifier: Apache-2.0
// `baton trace`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "fake_router.h"
#include "tests/temp_folder.h"

namespace baton::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr uint64_t kStart = 1'700'000'000'000'000'000;

class TraceTest : public ::testing::Test {
 protected:
  TraceTest() {
    router_.trace.set_request_id("r1");
    router_.trace.set_trace_id("t1");
    router_.trace.set_request_label("mine");
    AddSpan("request", "router", 0, 0, 40);
    AddSpan("attempt", "router", 1, 10, 40).set_attempt(1);
    v1::TraceSpan& prefill = AddSpan("prefill", "p0", 2, 10, 20);
    prefill.set_attempt(1);
    prefill.set_error("prefill_lost");
    v1::TraceAttribute& attribute = *prefill.add_attributes();
    attribute.set_key("baton.tokens");
    attribute.set_number(9);
    AddSpan("transfer", "p0", 2, 15, 25).set_attempt(1);
  }
  // Times in milliseconds. Ids count from 1; parent 0: none.
  v1::TraceSpan& AddSpan(const std::string& name, const std::string& process, uint64_t parent, int from, int to) {
    v1::TraceSpan& span = *router_.trace.add_spans();
    span.set_name(name);
    span.set_process(process);
    span.set_span_id(static_cast<uint64_t>(router_.trace.spans_size()));
    span.set_parent_span_id(parent);
    span.set_start_unix_nanos(kStart + static_cast<uint64_t>(from) * 1'000'000);
    span.set_end_unix_nanos(kStart + static_cast<uint64_t>(to) * 1'000'000);
    return span;
  }

  FakeRouter router_;
};

TEST_F(TraceTest, PrintsATimeline) {
  const CliResult run = RunCli({"trace", "r1", "--target", router_.target()});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("request r1, trace t1, label mine\n"));
  EXPECT_THAT(run.out,
              HasSubstr("     0.00 ms     40.00 ms  request       router  |################################|\n"));
  EXPECT_THAT(run.out,
              HasSubstr("    10.00 ms     30.00 ms    attempt 1   router  |        ########################|\n"));
  EXPECT_THAT(run.out, HasSubstr("    10.00 ms     10.00 ms      prefill   p0      |        #########               |"
                                 " ended: prefill_lost baton.tokens=9\n"));
}

TEST_F(TraceTest, WritesAFileForPerfetto) {
  const TempFolder folder;
  const std::string path = (folder.path() / "trace.json").string();
  EXPECT_EQ(RunCli({"trace", "r1", "--target", router_.target(), "--perfetto", path}).code, 0);
  std::ifstream file(path);
  const nlohmann::json events = nlohmann::json::parse(file)["traceEvents"];
  ASSERT_EQ(events.size(), 6u) << "two processes and four spans";
  EXPECT_EQ(events[0]["args"]["name"], "router");
  const nlohmann::json& prefill = events[4];
  EXPECT_NE(prefill["tid"], events[5]["tid"]) << "the transfer overlaps the prefill";
  EXPECT_EQ(prefill["name"], "prefill");
  EXPECT_EQ(prefill["ph"], "X");
  EXPECT_EQ(prefill["dur"], 10000.0);
  EXPECT_EQ(prefill["ts"].get<double>() - events[1]["ts"].get<double>(), 10000.0);
  EXPECT_NE(prefill["pid"], events[1]["pid"]);
  EXPECT_EQ(prefill["args"]["error"], "prefill_lost");
}

TEST_F(TraceTest, PrintsJson) {
  const CliResult run = RunCli({"trace", "r1", "--target", router_.target(), "--json"});
  EXPECT_EQ(nlohmann::json::parse(run.out)["spans"][2]["process"], "p0");
}

TEST_F(TraceTest, SaysWhatIsWrong) {
  const CliResult unknown = RunCli({"trace", "other", "--target", router_.target()});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("NOT_FOUND: no trace of other"));
  const CliResult file = RunCli({"trace", "r1", "--target", router_.target(), "--perfetto", "/nowhere/t.json"});
  EXPECT_EQ(file.code, 1);
  EXPECT_THAT(file.err, HasSubstr("--perfetto /nowhere/t.json: cannot be written: No such file"));
  EXPECT_EQ(RunCli({"trace"}).code, 2);
}

}  // namespace
}  // namespace baton::testing
