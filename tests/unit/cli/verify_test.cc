// SPDX-License-Identifier: Apache-2.0
// `baton verify` against a router whose workers answer as a test says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "fake_deployment.h"

namespace baton::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class VerifyTest : public ::testing::Test {
 protected:
  // p0, p1, d0, d1 and d2.
  void AddAll() {
    for (const char* id : {"p0", "p1", "d0", "d1", "d2"})
      deployment_.AddWorker(id, id[0] == 'p' ? "prefill" : "decode");
  }
  CliResult Verify(std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), {"verify", "--prompts=3", "--output-tokens=8", "--concurrency=4"});
    return deployment_.Run(arguments);
  }
  // Has a worker give another third token whenever `condition` holds.
  void SpoilTokens(const std::string& decode, std::function<bool(const FakeRun&)> condition) {
    deployment_.spoil = [=](const FakeRun& run, v1::Chunk& chunk) {
      const v1::Pin& pin = run.request.pin();
      const std::string& worker = run.migrated ? pin.migrate_to() : pin.decode_worker();
      if (worker == decode && chunk.output_index() >= 2 && condition(run)) chunk.set_token_ids(0, 4321);
    };
  }
  static bool Always(const FakeRun&) { return true; }

  FakeDeployment deployment_;
};

TEST_F(VerifyTest, EqualAnswersOfAllPairsAreProven) {
  AddAll();
  const CliResult run = Verify();
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("model m, numerics id m-1/kv-bf16x16/x-1/tp1: 6 pairs, 6 migrations\n"));
  EXPECT_THAT(run.out, ContainsRegex("alone +18 +18 +0 +0 +-\n"));
  EXPECT_THAT(run.out, ContainsRegex("load +24 +24 +0 +0 +-\n"));
  EXPECT_THAT(run.out, ContainsRegex("cached +18 +18 +0 +0 +-\n"));
  EXPECT_THAT(run.out, ContainsRegex("migration +12 +12 +0 +0 +-\n"));
  EXPECT_THAT(run.out, ContainsRegex("p1\\+d2 +10 +10 +0 +0 +-\n"));
  EXPECT_THAT(run.out, HasSubstr("equal: 72 of 72 answers as expected, 0 different, 0 failed"));
  // Every request is pinned, and "alone" and "load" share no prefix with any other.
  for (const v1::GenerateRequest& request : deployment_.router.requests()) {
    EXPECT_TRUE(request.has_pin());
    EXPECT_FALSE(request.cache_salt().empty());
    EXPECT_EQ(request.sampling().logprobs(), 5u);
  }
}

TEST_F(VerifyTest, AWorkerWithOtherTokensIsNamed) {
  AddAll();
  SpoilTokens("d1", Always);
  const CliResult run = Verify();
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("not proven equal"));
  EXPECT_THAT(run.out, ContainsRegex("first difference: alone, prompt 0, on p0\\+d1: output token 2 is 4321, expected "
                                     "[0-9]+\n  expected is what 4 of 6 answers say, p0\\+d0 among them"));
  EXPECT_THAT(run.out, ContainsRegex("p0\\+d1 +10 +0 +10 +0"));
  EXPECT_THAT(run.out, ContainsRegex("p1\\+d1 +10 +0 +10 +0"));
  EXPECT_THAT(run.out, ContainsRegex("p0\\+d0 +10 +10 +0 +0"));
}

// The first pair is no better than the others.
TEST_F(VerifyTest, TheAnswerOfMostPairsIsTheExpectedOne) {
  AddAll();
  SpoilTokens("d0", Always);
  const CliResult run = Verify();
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.out, ContainsRegex("on p0\\+d0: output token 2 is 4321.*\n.*4 of 6 answers say, p0\\+d1 among them"));
  EXPECT_THAT(run.out, ContainsRegex("p0\\+d1 +10 +10 +0 +0"));
}

TEST_F(VerifyTest, OneBitOfALogprobIsADifference) {
  AddAll();
  deployment_.spoil = [](const FakeRun& run, v1::Chunk& chunk) {
    if (run.request.pin().decode_worker() != "d2" || chunk.output_index() != 1) return;
    v1::TokenLogprob& logprob = *chunk.mutable_logprobs(0)->mutable_top(0);
    logprob.set_logprob(std::nextafter(logprob.logprob(), 1.0F));
  };
  const CliResult run = Verify();
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.out,
              ContainsRegex("on p0\\+d2: the logprob at output token 1 is [0-9]+ -?[0-9.]+ \\(bits [0-9a-f]{8}\\), "
                            "expected [0-9]+ -?[0-9.]+ \\(bits [0-9a-f]{8}\\)"));
}

TEST_F(VerifyTest, EachCheckFindsWhatOnlyItCanSee) {
  struct Case {
    const char* check;
    const char* path;
    std::function<bool(const FakeRun&)> condition;
  };
  const std::vector<Case> cases = {
      {"load", "p0\\+d1", [](const FakeRun& run) { return run.running > 1 && !run.cached; }},
      {"cached", "p0\\+d1", [](const FakeRun& run) { return run.cached; }},
      {"migration", "p[01]\\+d[02]>d1", [](const FakeRun& run) { return run.migrated; }},
  };
  for (const Case& c : cases) {
    FakeDeployment deployment;
    for (const char* id : {"p0", "p1", "d0", "d1", "d2"}) deployment.AddWorker(id, id[0] == 'p' ? "prefill" : "decode");
    deployment.spoil = [&](const FakeRun& run, v1::Chunk& chunk) {
      // Requests of one load stay together until others have come.
      if (std::string(c.check) == "load" && chunk.output_index() == 0) absl::SleepFor(absl::Milliseconds(20));
      const v1::Pin& pin = run.request.pin();
      if ((run.migrated ? pin.migrate_to() : pin.decode_worker()) == "d1" && c.condition(run))
        chunk.set_token_ids(0, 4321);
    };
    const CliResult run =
        deployment.Run({"verify", "--prompts=2", "--output-tokens=8", "--concurrency=4", "--max-pairs=6"});
    EXPECT_EQ(run.code, 1) << c.check;
    EXPECT_THAT(run.out,
                ContainsRegex(std::string("first difference: ") + c.check + ", prompt [01], on " + c.path + ":"));
    EXPECT_THAT(run.out, ContainsRegex("alone +12 +12 +0 +0")) << c.check;
  }
}

TEST_F(VerifyTest, ACheckThatCannotRunIsNamedAndFailsOnlyIfStrict) {
  deployment_.AddWorker("p0", "prefill");
  deployment_.AddWorker("d0", "decode");
  deployment_.prefix_cache = false;
  const CliResult run = Verify();
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, ContainsRegex("alone +6 +6 ")) << "a pair without others is compared with itself";
  EXPECT_THAT(run.out, ContainsRegex("cached +0 +0 +0 +0 +not run: no prompt was cached at p0\\+d0"));
  EXPECT_THAT(run.out, ContainsRegex("migration +0 +0 +0 +0 +not run: the group has one decode worker"));
  EXPECT_EQ(Verify({"--strict"}).code, 1);
}

TEST_F(VerifyTest, AWorkerOfBothRolesIsAPairWithItself) {
  deployment_.AddWorker("b0", "both");
  deployment_.AddWorker("b1", "both");
  const CliResult run = Verify({"--strict"});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, ContainsRegex("b0 +10 +10 +0 +0"));
  EXPECT_THAT(run.out, ContainsRegex("b1>b0 +2 +2 +0 +0"));
}

TEST_F(VerifyTest, ARouterThatIgnoresOrRefusesPinsProvesNothing) {
  AddAll();
  deployment_.spoil_finish = [](const FakeRun&, v1::Finish& finish) {
    for (v1::AttemptInfo& attempt : *finish.mutable_attempts()) attempt.set_decode_worker("d0");
  };
  const CliResult ignored = Verify();
  EXPECT_EQ(ignored.code, 1);
  EXPECT_THAT(ignored.out,
              ContainsRegex("first failure: alone, prompt 0, on p0\\+d1: the answer came from p0\\+d0, though"));

  FakeDeployment refusing;
  refusing.AddWorker("b0", "both");
  refusing.refuse = [](const FakeRun&) { return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "pin: no"); };
  const CliResult refused = refusing.Run({"verify"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.out, HasSubstr("first failure: alone, prompt 0, on b0: PERMISSION_DENIED: pin: no"));
  EXPECT_THAT(refused.out, ContainsRegex("load +0 +0 +0 +0 +not run: no pair answered a request alone"));
  EXPECT_THAT(refused.out, HasSubstr("not proven equal: 0 of 16 answers as expected, 0 different, 16 failed"));
}

TEST_F(VerifyTest, AnAnswerThatEndsBeforeItsMigrationIsAskedForAgainLonger) {
  AddAll();
  deployment_.migrates_at = 20;  // longer than two doublings of 8 tokens need
  const CliResult run = Verify();
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, ContainsRegex("migration +12 +12 +0 +0"));

  deployment_.migrates_at = 10'000;
  const CliResult never = Verify();
  EXPECT_EQ(never.code, 1);
  EXPECT_THAT(
      never.out,
      ContainsRegex("first failure: migration, prompt [0-9], on p[01]\\+d[012]>d[012]: the answer of 128 tokens "
                    "ended before the sequence had migrated"));
}

TEST_F(VerifyTest, WhatTheTimeDoesNotSufficeForIsNotProven) {
  AddAll();
  deployment_.refuse = [](const FakeRun& run) {
    if (run.request.pin().migrate_to() == "d2") absl::SleepFor(absl::Seconds(11));
    return grpc::Status::OK;
  };
  const CliResult run = Verify({"--timeout=10s"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.out, ContainsRegex("migration +2 +2 +0 +0 +10 not sent: the time was over"));
  EXPECT_THAT(run.out, ContainsRegex("0 different, 0 failed"));
}

TEST_F(VerifyTest, DifferentNumericsIdsAreComparedWithinThemselves) {
  deployment_.AddWorker("p0", "prefill", "n1");
  deployment_.AddWorker("d0", "decode", "n1");
  deployment_.AddWorker("b0", "both", "n2");
  deployment_.AddWorker("x0", "both", "n1", "another");
  SpoilTokens("b0", Always);
  const CliResult run = Verify();
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("model m, numerics id n1: 1 pair,"));
  EXPECT_THAT(run.out, HasSubstr("model m, numerics id n2: 1 pair,"));
  EXPECT_THAT(run.out, HasSubstr("model m has 2 numerics ids: answers were compared within each"));
  EXPECT_THAT(run.out, Not(HasSubstr("model another has")));
  EXPECT_THAT(Verify({"--model=another"}).out, Not(HasSubstr("model m,")));
  const CliResult unknown = Verify({"--model=unknown"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("has no serving worker of model unknown"));
}

TEST_F(VerifyTest, MaxPairsBoundsTheRunsAndCoversWorkers) {
  AddAll();
  const CliResult run = Verify({"--max-pairs=3", "--seed=5"});
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("3 of 6 pairs, 3 of 6 migrations"));
  for (const char* worker : {"p0", "p1", "d0", "d1", "d2"}) EXPECT_THAT(run.out, HasSubstr(worker));
}

TEST_F(VerifyTest, JsonHasEverything) {
  AddAll();
  SpoilTokens("d1", Always);
  const CliResult run = Verify({"--json"});
  EXPECT_EQ(run.code, 1);
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_FALSE(json["passed"]);
  const auto& group = json["groups"][0];
  EXPECT_EQ(group["checks"]["alone"]["different"], 6);
  EXPECT_EQ(group["paths"]["p0+d1"]["alone"]["equal"], 0);
  EXPECT_EQ(group["first_difference"]["path"], "p0+d1");
  EXPECT_EQ(group["first_difference"]["kind"], "token");
  EXPECT_EQ(group["first_difference"]["got"], "4321");
  EXPECT_EQ(group["first_difference"]["request"]["pin"]["decode_worker"], "d1");
}

TEST_F(VerifyTest, AnInterruptEndsItAtOnce) {
  AddAll();
  Interrupt interrupt;
  deployment_.refuse = [&](const FakeRun&) {
    interrupt.Trigger();
    return grpc::Status::OK;
  };
  const CliResult run = RunCli({"verify", "--target", deployment_.router.target()}, "", &interrupt);
  EXPECT_EQ(run.code, 130);
  EXPECT_LE(deployment_.router.requests().size(), 2u);
}

}  // namespace
}  // namespace baton::testing
