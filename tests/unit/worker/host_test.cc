// SPDX-License-Identifier: Apache-2.0
// A worker's start, and its refusals before the model is read.
#include "worker/host.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "engine/formats/step_profile.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "tests/tiny_models.h"

namespace baton {
namespace {

using testing::DemoModel;
using testing::Fails;
using testing::TempFolder;

WorkerOptions Options(const std::string& model) {
  WorkerOptions options;
  options.model = model;
  options.model_name = "m";
  options.worker_id = "w";
  options.listen = "127.0.0.1:0";
  options.threads = 1;
  options.pages = 4;
  return options;
}

absl::Status Start(const WorkerOptions& options) {
  return WorkerHost::Create(options, v1::WORKER_ROLE_BOTH, /*with_transport=*/false).status();
}

TEST(WorkerHostTest, StartsWithTheDemoModel) { EXPECT_OK(Start(Options(DemoModel("demo-draft").string()))); }

TEST(WorkerHostTest, RefusesADamagedTokenizerWithItsPath) {
  const TempFolder folder;
  folder.CopyFrom(DemoModel("demo-draft"));
  std::filesystem::resize_file(folder.path() / "tokenizer.json", 1000);
  EXPECT_TRUE(Fails(Start(Options(folder.path().string())), testing::kInvalid,
                    folder.path().string() + ": tokenizer.json: not valid JSON"));
}

TEST(WorkerHostTest, APortInUseIsSaidBeforeTheModelIsRead) {
  ASSERT_OK_AND_ASSIGN(const auto taken, MetricsServer::Start("127.0.0.1:0"));
  WorkerOptions options = Options("/no/such/model");
  options.listen = "127.0.0.1:" + std::to_string(taken->port());
  EXPECT_TRUE(Fails(Start(options), absl::StatusCode::kUnavailable, "listen: cannot listen on " + options.listen));
  options.metrics_listen = std::exchange(options.listen, "127.0.0.1:0");
  EXPECT_TRUE(Fails(Start(options), absl::StatusCode::kUnavailable, "metrics-listen: cannot listen on"));
}

TEST(WorkerHostTest, AReplayTakesItsTimesFromAProfile) {
  WorkerOptions options = Options(DemoModel("demo-draft").string());
  options.device = "replay";
  ASSERT_OK_AND_ASSIGN(const ReplayOptions constant, options.ForReplay());
  EXPECT_DOUBLE_EQ(constant.cost.step, 0.01);
  EXPECT_DOUBLE_EQ(constant.cost.prompt_token, 1e-4);
  const TempFolder folder;
  options.replay_profile = (folder.path() / "profile.json").string();
  const StepProfile profile{.model = "m",
                            .numerics_id = "id",
                            .threads = 1,
                            .layers = 1,
                            .page_tokens = 16,
                            .kv_token_bytes = 1,
                            .max_context_tokens = 1,
                            .cost = {.step = 1e-3, .prompt_token = 2e-5, .decode_row = 3e-5, .prompt_attended = 4e-9},
                            .steps = {}};
  ASSERT_OK(WriteStepProfile(profile, options.replay_profile));
  EXPECT_OK(Start(options));
  ASSERT_OK_AND_ASSIGN(const ReplayOptions measured, options.ForReplay());
  EXPECT_DOUBLE_EQ(measured.cost.decode_row, 3e-5);
  EXPECT_DOUBLE_EQ(measured.cost.prompt_attended, 4e-9);
  folder.Write("profile.json", R"({"format": "baton step profile", "version": 9})");
  EXPECT_TRUE(Fails(Start(options), testing::kInvalid, "replay-profile: " + options.replay_profile + ": version"));
  options.device = "cpu";
  EXPECT_TRUE(Fails(options.Finalize("both", /*needs_secret=*/false), testing::kInvalid,
                    "replay-profile is set and device is cpu, expected the device replay"));
}

}  // namespace
}  // namespace baton
