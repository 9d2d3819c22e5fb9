// SPDX-License-Identifier: Apache-2.0
// The options of baton-router. Each option is a flag and a YAML key of the same name (common/options.h).
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/log.h"
#include "common/options.h"
#include "router/balance.h"
#include "router/discovery/discovery.h"

namespace baton::router {

struct RouterOptions {
  std::string router_id = "router";
  std::string listen = "127.0.0.1:50051";
  std::string metrics_listen = "127.0.0.1:9400";
  std::string metrics_names = "baton";
  DiscoveryOptions discovery;

  absl::Duration peer_timeout = absl::Seconds(3);
  absl::Duration heartbeat_interval = absl::Milliseconds(100);
  absl::Duration probe_timeout = absl::Seconds(30);

  int max_requests = 1024;
  int max_attempts = 8;
  int max_prompt_tokens = 0;  // 0: the model's limit
  ByteSize max_message_bytes{4 << 20};
  absl::Duration default_deadline = absl::Minutes(10);
  absl::Duration overload_wait;
  absl::Duration placement_wait = absl::Seconds(10);
  absl::Duration drain_delay;
  absl::Duration drain_timeout = absl::Seconds(30);
  std::string placement = "prefix";
  int max_local_prefill_tokens = 512;
  std::string pins = "on";
  std::string role_changes = "on";
  std::string balance = "advise";
  BalanceRules balance_rules;
  absl::Duration ttft_slo;  // 0: none
  absl::Duration tpot_slo;
  std::vector<std::string> model_slos;
  std::string when_late = "refuse";
  std::string preset;

  std::string trace_endpoint;
  double trace_sample = 0.01;

  LogOptions log;
};

// Adds every option with its name, limits and help to `set`.
void DescribeOptions(OptionSet& set, RouterOptions& options);

// Checks addresses, and that timeouts fit each other. INVALID_ARGUMENT names the option.
absl::Status CheckOptions(const RouterOptions& options);

}  // namespace baton::router
