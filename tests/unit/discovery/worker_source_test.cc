// SPDX-License-Identifier: Apache-2.0
#include "router/discovery/worker_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/status_matchers.h"

namespace baton::router {
namespace {

using Kind = WorkerSource::Kind;
using testing::Fails;

TEST(WorkerSourceTest, AnAddressStandsForItself) {
  ASSERT_OK_AND_ASSIGN(const WorkerSource source, ParseWorkerSource("[::1]:50061"));
  EXPECT_EQ(source.kind, Kind::kAddress);
  EXPECT_EQ(source.entry, "[::1]:50061");
}

TEST(WorkerSourceTest, ANameWithAPortAsksForAddressRecords) {
  ASSERT_OK_AND_ASSIGN(const WorkerSource source, ParseWorkerSource("dns:///decode.baton.svc:50071"));
  EXPECT_EQ(source.kind, Kind::kAddressRecords);
  EXPECT_EQ(source.name, "decode.baton.svc");
  EXPECT_EQ(source.port, 50071);
}

TEST(WorkerSourceTest, ANameThatBeginsWithAnUnderscoreAsksForServiceRecords) {
  ASSERT_OK_AND_ASSIGN(const WorkerSource source, ParseWorkerSource("dns:///_grpc._tcp.decode"));
  EXPECT_EQ(source.kind, Kind::kServiceRecords);
  EXPECT_EQ(source.name, "_grpc._tcp.decode");
}

TEST(WorkerSourceTest, OtherFormsAreRefusedWithTheExpectedForms) {
  for (const char* entry :
       {"", "decode", "decode:0", "dns:decode:1", "dns://8.8.8.8/decode:1", "dns:///decode", "dns:///decode:0",
        "dns:///:1", "dns:///_grpc._tcp.decode:1", "dns:///a/b:1", "http://decode:1"}) {
    EXPECT_TRUE(Fails(ParseWorkerSource(entry).status(), absl::StatusCode::kInvalidArgument, "dns:///name:port"))
        << entry;
  }
}

TEST(WorkersFileTest, HasAnEntryOnEachLineAndComments) {
  ASSERT_OK_AND_ASSIGN(const std::vector<WorkerSource> sources,
                       ParseWorkersFile("# prefill\r\n a:1 # the first\n\n\tdns:///b:2\n"));
  ASSERT_EQ(sources.size(), 2u);
  EXPECT_EQ(sources[0].entry, "a:1");
  EXPECT_EQ(sources[1].entry, "dns:///b:2");
  EXPECT_TRUE(Fails(ParseWorkersFile("a:1\nb\n").status(), absl::StatusCode::kInvalidArgument, "line 2: \"b\""));
}

}  // namespace
}  // namespace baton::router
