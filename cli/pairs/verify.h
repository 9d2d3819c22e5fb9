// SPDX-License-Identifier: Apache-2.0
// Compares the answers of all pairs of workers bit by bit: the same requests alone, under load, with a cached prefix,
// and through a migration.
//
// Workers of one model and numerics id form a group, and answers are compared within their group. The answer that most
// pairs give to a request alone is the expected one. All requests are pinned, and an answer from another pair counts as
// failed.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "baton/v1/inference.pb.h"
#include "cli/pairs/answer.h"
#include "cli/pairs/plan.h"
#include "cli/pairs/prompts.h"

namespace baton {

class Client;
class Interrupt;

struct VerifyOptions {
  PromptOptions prompts = {};
  int at_once = 16;  // under load
  absl::Duration request_timeout = absl::Minutes(1);
  absl::Duration timeout = absl::Minutes(10);  // of all
};

enum class VerifyCheck : uint8_t { kAlone, kLoad, kCached, kMigration };
inline constexpr std::array kVerifyChecks = {VerifyCheck::kAlone, VerifyCheck::kLoad, VerifyCheck::kCached,
                                             VerifyCheck::kMigration};
// Returns "alone", "load", "cached" or "migration".
const char* NameOf(VerifyCheck check);

struct VerifyCounts {
  uint64_t equal = 0;
  uint64_t different = 0;
  uint64_t failed = 0;    // no answer, or not the one that was asked for
  uint64_t not_sent = 0;  // the time was over

  uint64_t runs() const { return equal + different + failed; }
};

// One answer that is not as expected.
struct VerifyMismatch {
  VerifyCheck check = VerifyCheck::kAlone;
  size_t prompt = 0;
  std::string path = {};           // such as "p0+d1" or "p0+d0>d1"
  std::string expected_from = {};  // the path of the expected answer
  size_t agreeing = 0;             // paths that gave the expected answer alone
  size_t asked = 0;
  AnswerDifference difference = {};
  v1::GenerateRequest request = {};  // repeats the run
};

struct VerifyFailure {
  VerifyCheck check = VerifyCheck::kAlone;
  size_t prompt = 0;
  std::string path = {};
  std::string reason = {};
};

struct VerifiedGroup {
  WorkerGroup group = {};
  std::map<VerifyCheck, VerifyCounts> checks = {};
  std::map<VerifyCheck, std::string> not_run = {};                        // why a check could not run
  std::map<std::string, std::map<VerifyCheck, VerifyCounts>> paths = {};  // by path
  std::optional<VerifyMismatch> first_difference = {};
  std::optional<VerifyFailure> first_failure = {};
};

struct VerifyResult {
  std::vector<VerifiedGroup> groups = {};
  absl::Duration took = {};
};

// Blocks until everything has run or the time is over. `progress` gets a line before each part.
VerifyResult Verify(Client& client, const std::vector<WorkerGroup>& groups, const VerifyOptions& options,
                    Interrupt& interrupt, const std::function<void(const std::string&)>& progress);

// Whether every answer that came was the expected one, and every request was sent. `strict`: and every check ran.
bool Passed(const VerifyResult& result, bool strict);

}  // namespace baton
