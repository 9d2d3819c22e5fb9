// SPDX-License-Identifier: Apache-2.0
// A table of workers for whom the test plays the network.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/steady_time.h"
#include "fake_tokenizer.h"
#include "router/worker_table.h"

namespace baton::router {

inline constexpr absl::Duration kPeerTimeout = absl::Seconds(3);

inline v1::WorkerStatus StatusOf(const std::string& id, v1::WorkerRole role, uint64_t epoch = 1) {
  v1::WorkerStatus status;
  status.set_protocol(v1::WORKER_PROTOCOL_CURRENT);
  status.set_worker_id(id);
  status.set_epoch(epoch);
  status.set_role(role);
  status.set_state(v1::WORKER_STATE_SERVING);
  status.mutable_model()->set_name("m");
  status.mutable_model()->set_vocab_size(3);
  status.mutable_model()->set_max_context_tokens(1000);
  status.mutable_model()->set_numerics_id("n1");
  status.mutable_model()->set_assets_fingerprint("f1");
  status.mutable_capacity()->set_pages_total(100);
  status.mutable_capacity()->set_page_tokens(16);
  status.mutable_capacity()->set_max_sequences(8);
  return status;
}

inline std::shared_ptr<const ModelAssets> AssetsNamed(const std::string& fingerprint) {
  auto assets = std::make_shared<ModelAssets>();
  assets->fingerprint = fingerprint;
  assets->tokenizer = std::make_unique<FakeTokenizer>(std::vector<std::string>{"a", "b", "c"});
  return assets;
}

// A table whose workers have the given addresses, and indices from 0.
inline WorkerTable TableOf(WorkerTable::Options options, const std::vector<std::string>& addresses) {
  WorkerTable table(std::move(options));
  table.SetMembers(SteadyTime(), addresses);
  return table;
}

// A table with `count` workers.
inline WorkerTable LargeTable(size_t count) {
  std::vector<std::string> addresses;
  for (size_t i = 0; i < count; ++i) addresses.push_back(absl::StrCat("a:", i + 1));
  return TableOf({.peer_timeout = absl::Hours(1)}, addresses);
}

// A table of four addresses, unless a test says otherwise; the test plays the network.
class WorkerTableTest : public ::testing::Test {
 protected:
  explicit WorkerTableTest(const std::vector<std::string>& addresses = {"a:1", "b:2", "c:3", "d:4"})
      : table_({.peer_timeout = kPeerTimeout, .is_idle = [this](const WorkerRef&) { return idle_; }}) {
    table_.SetMembers(now_, addresses);
  }
  void Hear(size_t worker, const v1::WorkerStatus& status) {
    table_.OnStatus(now_, worker, status, [] { return nullptr; });
  }
  WorkerTable::Effects Advance(absl::Duration by = absl::ZeroDuration()) {
    now_ += by;
    return table_.Advance(now_);
  }
  // p1 and d1 at the first two addresses, their pair ready.
  void BringUpPair() {
    Hear(0, StatusOf("p1", v1::WORKER_ROLE_PREFILL));
    Hear(1, StatusOf("d1", v1::WORKER_ROLE_DECODE));
    Advance();
    table_.OnAssets(now_, "f1", AssetsNamed("f1"));
    ProbeAll(absl::OkStatus());
  }
  int ProbeAll(const absl::Status& result) {
    const std::vector<Placement> probes = Advance().probe;
    for (const Placement& probe : probes) table_.OnProbed(now_, probe.pair, result);
    return static_cast<int>(probes.size());
  }
  PlacementResult Place(std::vector<WorkerKey> avoid = {}, const std::string& numerics_id = "") {
    return table_.Place(now_, {"m", "f1", numerics_id, 10, 20, std::move(avoid), {}, 0, {}});
  }
  std::string StateOf(size_t worker) {
    v1::GetStatusResponse response;
    table_.Describe(now_, response);
    return response.workers(static_cast<int>(worker)).state();
  }
  v1::PairInfo PairOf(const std::string& prefill, const std::string& decode) {
    v1::GetStatusResponse response;
    table_.Describe(now_, response);
    for (const v1::PairInfo& pair : response.pairs()) {
      if (pair.prefill_worker() == prefill && pair.decode_worker() == decode) return pair;
    }
    return {};
  }

  SteadyTime now_;
  bool idle_ = true;  // whether the router has no request at any worker
  WorkerTable table_;
};

}  // namespace baton::router
