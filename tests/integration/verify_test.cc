// SPDX-License-Identifier: Apache-2.0
// `baton verify` and the measurements of `baton doctor` on real workers: equal ones, and one with damaged weights.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/tools/make_model.h"
#include "cluster_test.h"
#include "tests/files.h"
#include "tests/temp_folder.h"

namespace baton::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Not;

// A liveness bound: sanitizers and a busy machine are slow.
constexpr absl::Duration kVerifyPatience = absl::Minutes(5);

struct Output {
  int code = -1;
  std::string text;  // stdout and stderr
};

Output RunBaton(Cluster& cluster, std::vector<std::string> arguments) {
  const TempFolder folder;
  const std::string log = folder.path() / "output";
  arguments.push_back("--target=" + cluster.target());
  Process process({.name = "baton",
                   .binary = BinaryFolder() / "baton",
                   .arguments = std::move(arguments),
                   .environment = {},
                   .log_file = log});
  EXPECT_OK(process.Start());
  const absl::StatusOr<int> status = process.Wait(kVerifyPatience);
  EXPECT_OK(status);
  return {status.ok() && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1, ReadFile(log)};
}

const std::vector<std::string> kSmall = {"verify", "--prompts=4", "--prompt-tokens=64", "--output-tokens=16",
                                         "--concurrency=4"};

Output Verify(Cluster& cluster, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = kSmall;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunBaton(cluster, arguments);
}

TEST(VerifyTest, EqualWorkersAreProvenEqualInEveryWay) {
  ASSERT_OK_AND_ASSIGN(const auto cluster, Cluster::Start({.workers = {Prefill("p0"), Decode("d0"), Both("b0")}}));
  const Output run = Verify(*cluster, {"--strict", "--json"});
  ASSERT_EQ(run.code, 0) << run.text;
  const auto json = nlohmann::json::parse(run.text);
  const auto& group = json["groups"][0];
  EXPECT_EQ(json["groups"].size(), 1u);
  for (const auto& [check, runs] :
       std::vector<std::pair<std::string, int>>{{"alone", 12}, {"load", 12}, {"cached", 12}, {"migration", 4}}) {
    EXPECT_EQ(group["checks"][check]["equal"], runs) << check << "\n" << run.text;
    EXPECT_EQ(group["checks"][check]["runs"], runs) << check;
  }
  for (const char* path : {"p0+d0", "p0+b0", "b0"}) EXPECT_EQ(group["paths"][path]["alone"]["equal"], 4) << path;
  EXPECT_TRUE(group["paths"].contains("p0+d0>b0")) << run.text;
  EXPECT_OK(cluster->WaitIdle());
}

TEST(VerifyTest, OneDecodeWorkerCannotShowAMigration) {
  ASSERT_OK_AND_ASSIGN(const auto cluster, Cluster::Start({.workers = {Prefill("p0"), Decode("d0")}}));
  const Output run = Verify(*cluster, {});
  EXPECT_EQ(run.code, 0) << run.text;
  EXPECT_THAT(run.text, ContainsRegex("migration +0 +0 +0 +0 +not run: the group has one decode worker"));
  EXPECT_EQ(Verify(*cluster, {"--strict"}).code, 1);
}

// Negates weights that the fingerprint of a large model does not read.
void DamageUnhashedWeights(const fs::path& folder, const std::string& tensor) {
  std::fstream file(folder / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  uint64_t header_bytes = 0;
  file.read(reinterpret_cast<char*>(&header_bytes), sizeof(header_bytes));
  std::string header(header_bytes, 0);
  file.read(header.data(), static_cast<std::streamsize>(header_bytes));
  const auto offsets = nlohmann::json::parse(header)[tensor]["data_offsets"];
  const uint64_t begin = sizeof(header_bytes) + header_bytes + offsets[0].get<uint64_t>();
  const uint64_t end = sizeof(header_bytes) + header_bytes + offsets[1].get<uint64_t>();
  // The fingerprint of a model of more than 64 MiB reads every second block of 4096 bytes, and the last 4096 bytes.
  constexpr uint64_t kBlock = 4096;
  std::vector<float> block(kBlock / sizeof(float));
  for (uint64_t at = begin + kBlock; at + 2 * kBlock <= end; at += 2 * kBlock) {
    file.seekg(static_cast<std::streamoff>(at));
    file.read(reinterpret_cast<char*>(block.data()), kBlock);
    for (float& weight : block) weight = -weight;
    file.seekp(static_cast<std::streamoff>(at));
    file.write(reinterpret_cast<const char*>(block.data()), kBlock);
  }
  ASSERT_TRUE(file.good());
}

// A worker whose weights were damaged passes the router's checks: its numerics id and its probes are as those of
// others.
TEST(VerifyTest, AWorkerWithDamagedWeightsIsCaughtAndNamed) {
  const TempFolder folder;
  const fs::path good = folder.path() / "good";
  const fs::path damaged = folder.path() / "damaged";
  constexpr ModelPreset kLarge = {.name = "large enough",
                                  .hidden_size = 256,
                                  .layers = 1,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .head_dim = 64,
                                  .ffn_size = 256,
                                  .vocab_size = 34000,
                                  .max_positions = 512,
                                  .tied_embeddings = false,
                                  .rope_theta = 10000,
                                  .rope_scaling = {}};
  ASSERT_OK(MakeModel({.preset = kLarge, .type = TensorType::kF32, .format = ModelFormat::kSafetensors}, good));
  fs::copy(good, damaged, fs::copy_options::recursive);
  DamageUnhashedWeights(damaged, "lm_head.weight");
  ASSERT_OK_AND_ASSIGN(const auto cluster,
                       Cluster::Start({.workers = {Prefill("p0"), Decode("d0", {"--model=" + damaged.string()}),
                                                   Decode("d1"), Decode("d2")},
                                       .worker_flags = {"--model=" + good.string()}}));
  const Output run = Verify(*cluster, {"--max-pairs=4"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.text, HasSubstr("3 pairs, 4 of 6 migrations")) << "one numerics id";
  EXPECT_THAT(run.text, ContainsRegex("first difference: alone, prompt 0, on p0\\+d0: [^\n]*, expected [^\n]*\n"
                                      "  expected is what 2 of 3 answers say, p0\\+d1 among them"));
  EXPECT_THAT(run.text, ContainsRegex("p0\\+d0 +12 +0 +12 +0"));
  EXPECT_THAT(run.text, ContainsRegex("p0\\+d1 +12 +12 +0 +0"));
  EXPECT_THAT(run.text, ContainsRegex("p0\\+d2 +12 +12 +0 +0"));
  EXPECT_THAT(run.text, ContainsRegex("p0\\+d[12]>d0 +2 +0 +2 +0")) << "the damage shows after a migration, too";
  EXPECT_THAT(run.text, HasSubstr("the workers are not proven equal"));
  EXPECT_OK(cluster->WaitIdle());
}

TEST(DoctorTest, EachPathIsMeasured) {
  ASSERT_OK_AND_ASSIGN(const auto cluster, Cluster::Start({.workers = {Prefill("p0"), Decode("d0"), Decode("d1")}}));
  const Output run = RunBaton(*cluster, {"doctor"});
  EXPECT_EQ(run.code, 0) << run.text;
  for (const char* path : {"p0\\+d0", "p0\\+d1"}) {
    // Path, transport, prompt tokens, KV bytes, MB/s, TTFT, transfer, exposed.
    EXPECT_THAT(run.text, ContainsRegex(absl::StrCat(
                              path, " +ucx:[a-z]+ +512 +[0-9.]+ [KM]iB +(>= )?[0-9]+ +[0-9.]+ +[0-9.]+ +[0-9]+ %")));
  }
  EXPECT_THAT(run.text, HasSubstr("2 paths between workers are measured: "));
  EXPECT_THAT(run.text, Not(HasSubstr("could not be measured")));
  ASSERT_OK_AND_ASSIGN(const v1::GetStatusResponse status, cluster->Status());
  for (const v1::PairInfo& pair : status.pairs()) {
    EXPECT_THAT(pair.transport(), HasSubstr("ucx:")) << "the router has learnt the path, too";
  }
  for (const v1::WorkerInfo& worker : status.workers()) {
    EXPECT_THAT(worker.facts().cpu_features(), ElementsAreArray(status.router().cpu_features()));
  }

  const Output unmeasured = RunBaton(*cluster, {"doctor", "--no-measure"});
  EXPECT_EQ(unmeasured.code, 0);
  EXPECT_THAT(unmeasured.text, Not(HasSubstr("TTFT")));
  EXPECT_OK(cluster->WaitIdle());
}

TEST(DoctorTest, ARouterWithoutPinsIsNotMeasuredAndNotVerified) {
  ASSERT_OK_AND_ASSIGN(const auto cluster,
                       Cluster::Start({.workers = {Prefill("p0"), Decode("d0")}, .router_flags = {"--pins=off"}}));
  const Output doctor = RunBaton(*cluster, {"doctor"});
  EXPECT_EQ(doctor.code, 0) << doctor.text;
  EXPECT_THAT(doctor.text, HasSubstr("warning  1 path could not be measured (p0+d0): PERMISSION_DENIED: pin:"));
  const Output verify = Verify(*cluster, {});
  EXPECT_EQ(verify.code, 1);
  EXPECT_THAT(verify.text, HasSubstr("first failure: alone, prompt 0, on p0+d0: PERMISSION_DENIED: pin:"));
}

}  // namespace
}  // namespace baton::testing
