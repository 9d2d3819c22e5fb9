// SPDX-License-Identifier: Apache-2.0
// The options that prefill and decode workers share: one schema for flags and YAML.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "baton/v1/worker.pb.h"
#include "common/log.h"
#include "common/options.h"
#include "engine/model/model.h"
#include "engine/model/replay_model.h"
#include "kvtransfer/transport.h"
#include "worker/admission/capacity_ledger.h"
#include "worker/schedule.h"

namespace baton {

struct WorkerOptions {
  std::string model;       // folder or GGUF file
  std::string model_name;  // default: the name of the folder or file
  std::string worker_id;   // default: "<role>-<host>-<port>"
  std::string listen;
  std::string metrics_listen;
  std::string metrics_names = "baton";

  std::string device = "cpu";
  absl::Duration replay_step = absl::Milliseconds(10);
  int replay_prefill_speed = 10000;
  std::string replay_profile;
  int threads = 0;  // 0: one per CPU this process may use
  std::vector<int> cpus;
  std::string kernels = "auto";
  std::string quantize = "off";
  std::string kv_dtype = "auto";
  int page_tokens = 16;
  ByteSize kv_memory{512ull << 20};
  int pages = 0;  // when set: instead of kv_memory

  std::string prefault = "on";
  std::string prefix_cache = "on";
  ByteSize kv_tier_memory{0};  // 0: no memory tier
  std::string kv_tier_file;    // empty: no file tier
  ByteSize kv_tier_file_size{16ull << 30};

  ScheduleLimits schedule{.chunk_tokens = 0};  // 0: the token budget
  std::string batching = "continuous";
  std::string preset;
  int max_queue = 256;

  TransportOptions transport;
  std::string secret_file;
  absl::Duration drain_timeout = absl::Seconds(30);
  absl::Duration role_cooldown = absl::Seconds(30);
  int max_bypass = CapacityLedger::Limits{}.max_bypass;
  int growth_watermark_pages = CapacityLedger::Limits{}.growth_watermark_pages;
  ByteSize max_message_bytes{16 << 20};
  LogOptions log;

  void AddTo(OptionSet& set, const char* handoff_listen_help);
  // Checks options against each other, fills in dependent defaults and reads the secret. INVALID_ARGUMENT names the
  // option. `needs_secret`: this worker hands over or receives.
  absl::Status Finalize(std::string_view role, bool needs_secret);
  ModelOptions ForModel() const;
  // Reads the file of replay_profile, if set. INVALID_ARGUMENT names the option, the file and the field.
  absl::StatusOr<ReplayOptions> ForReplay() const;
  // Returns the limit of open attempts, waiting or in progress.
  int max_attempts() const { return max_queue + schedule.max_sequences; }
  // Returns the limits of what a worker of `role` grants.
  CapacityLedger::Limits Capacity(v1::WorkerRole role) const;
};

}  // namespace baton
