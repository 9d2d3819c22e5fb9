// SPDX-License-Identifier: Apache-2.0
// `baton doctor`.
#include "cli/report/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "absl/time/clock.h"
#include "cli/report/doctor_paths.h"
#include "common/arguments.h"
#include "fake_deployment.h"
#include "fake_router.h"

namespace baton::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Kind = Finding::Kind;

// A deployment of one prefill and two decode workers without fault.
v1::GetStatusResponse Healthy() {
  v1::GetStatusResponse status;
  status.set_ready(true);
  const auto fill = [](v1::ProcessFacts& facts, const std::string& host, uint32_t threads) {
    facts.set_version(std::string(BatonVersion()));
    facts.set_host(host);
    facts.set_cpus(4);
    facts.set_threads(threads);
    facts.set_max_open_files(65536);
  };
  fill(*status.mutable_router(), "h0", 0);
  for (const char* id : {"p0", "d0", "d1"}) {
    v1::WorkerInfo& worker = *status.add_workers();
    worker.set_worker_id(id);
    worker.set_role(id[0] == 'p' ? "prefill" : "decode");
    worker.set_address("10.0.0.1:1");
    worker.set_model("m");
    worker.set_state("serving");
    worker.set_pages_total(100);
    worker.set_numerics_id("Llama-1234/kv-bf16x16/avx2-3/tp1");
    fill(*worker.mutable_facts(), id, 4);
  }
  for (const char* decode : {"d0", "d1"}) {
    v1::PairInfo& pair = *status.add_pairs();
    pair.set_prefill_worker("p0");
    pair.set_decode_worker(decode);
    pair.set_state("ready");
    pair.set_transport("ucx:tcp");
    pair.set_bytes_per_second(1e9);
  }
  return status;
}

std::string Report(const v1::GetStatusResponse& status) { return ToText(Examine(status, BatonVersion())); }

TEST(DoctorTest, AHealthyDeploymentHasNothingToChange) {
  const std::string report = Report(Healthy());
  EXPECT_THAT(report, Not(HasSubstr("problem")));
  EXPECT_THAT(report, Not(HasSubstr("warning")));
  EXPECT_THAT(report, HasSubstr("fine     the router is ready, with 2 ready pairs\n"));
  EXPECT_THAT(report, HasSubstr("2 paths between workers are measured: 1000 to 1000 MB/s"));
}

TEST(DoctorTest, EachFaultIsNamed) {
  struct Case {
    std::function<void(v1::GetStatusResponse&)> spoil;
    Kind kind;
    const char* finding;
  };
  const Case cases[] = {
      {[](auto& s) { s.clear_workers(); }, Kind::kProblem, "the router has no workers"},
      {[](auto& s) {
         s.mutable_workers(1)->set_state("lost");
         s.mutable_workers(1)->set_detail("silent for 3s");
       },
       Kind::kProblem, "worker d0 at 10.0.0.1:1 is lost: silent for 3s"},
      {[](auto& s) { s.mutable_workers(1)->set_state("draining"); }, Kind::kWarning,
       "worker d0 at 10.0.0.1:1 is draining"},
      {[](auto& s) { s.mutable_workers(1)->set_state("switching"); }, Kind::kWarning,
       "worker d0 at 10.0.0.1:1 is switching"},
      {[](auto& s) { s.mutable_workers(0)->set_state("lost"); }, Kind::kProblem,
       "model m has no serving prefill worker"},
      {[](auto& s) {
         s.mutable_workers(1)->set_state("lost");
         s.mutable_workers(2)->set_state("lost");
       },
       Kind::kProblem, "model m has no serving decode worker"},
      {[](auto& s) { s.mutable_workers(2)->set_worker_id("d0"); }, Kind::kProblem, "two workers have the id d0"},
      {[](auto& s) { s.mutable_workers(2)->set_numerics_id("Llama-1234/kv-int8x16/avx512-3/tp1"); }, Kind::kProblem,
       "compute different numbers: KV type or page size (p0: kv-bf16x16, d1: kv-int8x16); kernels (p0: avx2-3, d1: "
       "avx512-3)"},
      {[](auto& s) {
         s.mutable_pairs(0)->set_state("failed");
         s.mutable_pairs(0)->set_detail("peer_lost");
       },
       Kind::kProblem, "pair p0+d0 is failed: peer_lost"},
      {[](auto& s) { s.mutable_pairs(0)->set_state("probing"); }, Kind::kWarning, "pair p0+d0 is probing"},
      {[](auto& s) { s.mutable_workers(1)->mutable_facts()->set_version("0.0.1"); }, Kind::kWarning,
       "different versions: 0.0.1 (d0)"},
      {[](auto& s) {
         s.mutable_router()->set_version("0.0.1");
         for (auto& worker : *s.mutable_workers()) worker.mutable_facts()->set_version("0.0.1");
       },
       Kind::kWarning, "the router has version 0.0.1, this program"},
      {[](auto& s) { s.mutable_workers(1)->set_clock_ahead_seconds(-2.5); }, Kind::kWarning,
       "the clock of worker d0 is 2.5 s behind the router's"},
      {[](auto& s) { s.mutable_workers(1)->set_clock_ahead_seconds(2.5); }, Kind::kWarning,
       "2.5 s ahead of the router's"},
      {[](auto& s) { s.mutable_workers(1)->mutable_facts()->set_threads(5); }, Kind::kWarning,
       "worker d0 has 5 compute threads for 4 CPUs"},
      {[](auto& s) { s.mutable_workers(1)->mutable_facts()->set_max_open_files(1024); }, Kind::kWarning,
       "worker d0 may open only 1024 files"},
      {[](auto& s) { s.mutable_router()->set_max_open_files(1024); }, Kind::kWarning,
       "the router may open only 1024 files"},
      {[](auto& s) { s.mutable_workers(1)->set_pages_quarantined(3); }, Kind::kWarning,
       "worker d0 has 3 pages in quarantine"},
      {[](auto& s) { s.mutable_workers(1)->set_pages_used(96); }, Kind::kWarning, "worker d0 uses 96 of 100 KV pages"},
      {[](auto& s) { s.mutable_workers(1)->mutable_facts()->set_host("p0"); }, Kind::kWarning,
       "pair p0+d0 is on one host and uses ucx:tcp"},
      {[](auto& s) { s.mutable_pairs(0)->set_bytes_per_second(1e8); }, Kind::kWarning,
       "the path p0+d0 has 100 MB/s, the median of the others 1000 MB/s"},
  };
  for (const Case& c : cases) {
    v1::GetStatusResponse status = Healthy();
    c.spoil(status);
    const std::vector<Finding> findings = Examine(status, BatonVersion());
    const auto found = std::ranges::find_if(
        findings, [&](const Finding& finding) { return finding.what.find(c.finding) != std::string::npos; });
    ASSERT_NE(found, findings.end()) << c.finding << "\n" << ToText(findings);
    EXPECT_EQ(found->kind, c.kind) << c.finding;
    EXPECT_FALSE(found->advice.empty()) << c.finding;
  }
}

TEST(DoctorTest, ProblemsComeFirst) {
  v1::GetStatusResponse status = Healthy();
  status.mutable_workers(1)->set_pages_quarantined(3);
  status.mutable_pairs(1)->set_state("failed");
  const std::vector<Finding> findings = Examine(status, BatonVersion());
  EXPECT_EQ(findings[0].kind, Kind::kProblem);
  EXPECT_EQ(findings[1].kind, Kind::kWarning);
  EXPECT_EQ(findings.back().kind, Kind::kFine);
}

TEST(DoctorTest, AnUnmeasuredPathIsNoFault) {
  v1::GetStatusResponse status = Healthy();
  for (v1::PairInfo& pair : *status.mutable_pairs()) pair.set_bytes_per_second(0);
  EXPECT_THAT(Report(status), HasSubstr("fine     no path between workers was measured"));
}

MeasuredPath Measured(const std::string& decode, double bytes_per_second) {
  return {.pair = {"p0", decode},
          .transport = "ucx:shm",
          .prompt_tokens = 512,
          .kv_bytes = 3 << 20,
          .ttft = 0.25,
          .transfer = 0.02,
          .exposed = 0.005,
          .bytes_per_second = bytes_per_second};
}

std::string Report(const v1::GetStatusResponse& status, const MeasuredPaths& measured) {
  return ToText(Examine(status, BatonVersion(), measured));
}

TEST(DoctorTest, MeasuredPathsReplaceTheRoutersFigures) {
  const MeasuredPaths measured = {.paths = {Measured("d0", 2e9), Measured("d1", 5e8)}, .possible = 5};
  const std::string report = Report(Healthy(), measured);
  EXPECT_THAT(report, HasSubstr("2 paths between workers are measured: 500 to 2000 MB/s\n"));
  EXPECT_THAT(report, HasSubstr("warning  the path p0+d1 has 500 MB/s, the median of the others 2000 MB/s"));
  EXPECT_THAT(report, Not(HasSubstr("path p0+d0 has")));
  EXPECT_THAT(report, HasSubstr("fine     2 of 5 paths were measured (--max-pairs)"));
  EXPECT_EQ(ToText(measured),
            "PATH   TRANSPORT  PROMPT TOKENS  KV       MB/S  TTFT MS  TRANSFER MS  EXPOSED\n"
            "p0+d0  ucx:shm              512  3.0 MiB  2000   250.00        20.00  25 %\n"
            "p0+d1  ucx:shm              512  3.0 MiB   500   250.00        20.00  25 %\n");
}

TEST(DoctorTest, APathThatWaitedForTheComputationIsNotCalledSlow) {
  MeasuredPaths measured = {.paths = {Measured("d0", 2e9), Measured("d1", 1e8)}, .possible = 2};
  measured.paths[1].waited_for_compute = true;
  const std::string report = Report(Healthy(), measured);
  EXPECT_THAT(report, Not(HasSubstr("warning")));
  EXPECT_THAT(report, HasSubstr("2 paths between workers are measured: 100 to 2000 MB/s or more\n"));
  EXPECT_THAT(ToText(measured), HasSubstr(">= 100"));

  measured.paths = {Measured("d0", 1e8), Measured("d1", 2e9)};
  measured.paths[1].waited_for_compute = true;
  EXPECT_THAT(Report(Healthy(), measured),
              HasSubstr("warning  the path p0+d0 has 100 MB/s, the median of the others 2000 MB/s"));
}

TEST(DoctorTest, ASharedReasonOfUnmeasuredPathsIsSaidOnce) {
  MeasuredPaths measured = {.paths = {Measured("d0", 0), Measured("d1", 0)}, .possible = 2};
  for (MeasuredPath& path : measured.paths) {
    path.failure = "full";
    path.kv_bytes = 0;
  }
  EXPECT_THAT(Report(Healthy(), measured), HasSubstr("warning  2 paths could not be measured (p0+d0, p0+d1): full\n"));
  EXPECT_EQ(ToText(measured), "");
}

TEST(DoctorTest, KernelsBelowThoseOfAllCpusAreNamed) {
  v1::GetStatusResponse status = Healthy();  // computes with avx2
  const auto set_features = [&](int worker, const std::vector<std::string>& features) {
    auto& facts = *status.mutable_workers(worker)->mutable_facts();
    facts.mutable_cpu_features()->Assign(features.begin(), features.end());
  };
  const std::vector<std::string> avx2 = {"avx2", "fma", "f16c"};
  const std::vector<std::string> avx512 = {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512dq"};
  std::vector<std::string> vnni = avx512;
  vnni.emplace_back("avx512vnni");
  for (int worker = 0; worker < 3; ++worker) set_features(worker, vnni);
  EXPECT_THAT(Report(status), HasSubstr("the workers of model m compute with avx2 kernels, and their CPUs offer "
                                        "avx512-vnni\n         Start all of them"));
  set_features(1, avx512);
  EXPECT_THAT(Report(status), HasSubstr("their CPUs offer avx512\n"));
  set_features(2, avx2);
  EXPECT_THAT(Report(status), Not(HasSubstr("CPUs offer"))) << "d1 has no better kernels";
  for (int worker = 0; worker < 3; ++worker) set_features(worker, vnni);
  for (v1::WorkerInfo& worker : *status.mutable_workers()) worker.set_numerics_id("m/kv-bf16x16/avx512-vnni-3/tp1");
  EXPECT_THAT(Report(status), Not(HasSubstr("CPUs offer")));
  for (v1::WorkerInfo& worker : *status.mutable_workers()) worker.set_numerics_id("replay-2-m/kv-bf16x16x64");
  EXPECT_THAT(Report(status), Not(HasSubstr("CPUs offer"))) << "replay computes nothing";
}

TEST(DoctorTest, TheCommandMeasuresEachReadyPath) {
  FakeDeployment deployment;
  for (const char* id : {"p0", "d0", "d1", "b0"}) {
    deployment.AddWorker(id, id[0] == 'p' ? "prefill" : id[0] == 'b' ? "both" : "decode");
  }
  deployment.router.status.mutable_pairs(0)->set_state("probing");  // p0+d0
  const CliResult run = deployment.Run({"doctor", "--prompt-tokens=40"});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("p0+d1  ucx:shm               40  1.0 MiB   105    20.00        10.00  10 %\n"));
  EXPECT_THAT(run.out, HasSubstr("p0+b0"));
  EXPECT_THAT(run.out, Not(HasSubstr("p0+d0  ucx")));
  const std::vector<v1::GenerateRequest> sent = deployment.router.requests();
  ASSERT_EQ(sent.size(), 6u) << "three through each path";
  // A prompt by itself, then another one that is cached at the prefill worker before it is handed over.
  EXPECT_EQ(sent[0].sampling().max_tokens(), 2u);
  EXPECT_EQ(sent[1].sampling().max_tokens(), 1u);
  EXPECT_EQ(sent[2].sampling().max_tokens(), 2u);
  EXPECT_NE(sent[0].token_ids().SerializeAsString(), sent[1].token_ids().SerializeAsString());
  EXPECT_EQ(sent[1].token_ids().SerializeAsString(), sent[2].token_ids().SerializeAsString());
  for (const v1::GenerateRequest& request : sent) EXPECT_EQ(request.token_ids().ids_size(), 40);

  EXPECT_EQ(deployment.Run({"doctor", "--no-measure"}).code, 0);
  EXPECT_EQ(deployment.router.requests().size(), 6u);
  const CliResult one = deployment.Run({"doctor", "--max-pairs=1"});
  EXPECT_THAT(one.out, HasSubstr("1 of 2 paths were measured"));
}

// A busy machine makes any path slow for a moment.
TEST(DoctorTest, APathThatIsSlowOnceIsMeasuredAgain) {
  for (const bool always : {false, true}) {
    FakeDeployment deployment;
    for (const char* id : {"p0", "d0", "d1", "d2"}) deployment.AddWorker(id, id[0] == 'p' ? "prefill" : "decode");
    int slow = 0;
    deployment.spoil_finish = [&](const FakeRun& run, v1::Finish& finish) {
      if (run.request.pin().decode_worker() != "d1" || (!always && slow++ >= 3)) return;
      finish.mutable_timings()->set_transfer_seconds(1);
      finish.mutable_timings()->set_transfer_exposed_seconds(1);
    };
    const CliResult run = deployment.Run({"doctor"});
    EXPECT_EQ(run.code, 0);
    EXPECT_THAT(run.out, always ? HasSubstr("warning  the path p0+d1 has 1 MB/s, the median of the others 105 MB/s")
                                : HasSubstr("3 paths between workers are measured: 105 to 105 MB/s\n"));
    EXPECT_EQ(deployment.router.requests().size(), always ? 15u : 12u) << "twice again at most";
  }
}

TEST(DoctorTest, MeasurementsAreBounded) {
  FakeDeployment deployment;
  for (const char* id : {"p0", "d0", "d1", "d2"}) deployment.AddWorker(id, id[0] == 'p' ? "prefill" : "decode");
  deployment.refuse = [](const FakeRun&) {
    absl::SleepFor(absl::Milliseconds(150));
    return grpc::Status::OK;
  };
  const CliResult run = deployment.Run({"doctor", "--timeout=200ms"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, HasSubstr("the time for measurements was over"));
  EXPECT_LE(deployment.router.requests().size(), 2u);
}

TEST(DoctorTest, TheCommandFailsIfThereIsAProblem) {
  FakeRouter router;
  router.status = Healthy();
  const CliResult fine = RunCli({"doctor", "--target", router.target()});
  EXPECT_EQ(fine.code, 0) << fine.err;
  EXPECT_THAT(fine.out, HasSubstr("fine     all processes have version"));
  router.status.mutable_workers(1)->set_state("lost");
  const CliResult bad = RunCli({"doctor", "--target", router.target()});
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.out, HasSubstr("problem  worker d0"));
  EXPECT_THAT(bad.err, HasSubstr("1 problem, see above"));
}

}  // namespace
}  // namespace baton::testing
