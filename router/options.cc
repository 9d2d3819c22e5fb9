// SPDX-License-Identifier: Apache-2.0
#include "router/options.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "common/metrics.h"
#include "common/status_macros.h"
#include "router/discovery/dns_lookup.h"
#include "router/objectives.h"

namespace baton::router {

void DescribeOptions(OptionSet& set, RouterOptions& options) {
  set.Add("router-id", &options.router_id, "name of this process in logs");
  set.Add("listen", &options.listen, "host:port for clients (gRPC)");
  set.Add("metrics-listen", &options.metrics_listen, "host:port for /metrics; empty: not served");
  set.AddChoice("metrics-names", &options.metrics_names, kMetricsNames,
                "names of the metrics: Baton's, vLLM's for the same facts, or both");
  set.AddList("workers", &options.discovery.workers,
              "host:port of each worker's gRPC server; dns:///name:port for a worker at each address of the name; "
              "dns:///_service._protocol.name for SRV records. Workers report their roles and models");
  set.Add("workers-file", &options.discovery.workers_file,
          "file with more workers, one on each line; changes of the file count without a restart");
  set.Add("discovery-interval", &options.discovery.interval, "how often names in DNS and the workers file are read",
          absl::Milliseconds(100), absl::Hours(1));
  set.Add("dns-servers", &options.discovery.dns.servers,
          "address[:port] of the DNS servers, separated by commas (default: those of /etc/resolv.conf)");

  set.Add("peer-timeout", &options.peer_timeout, "a worker silent for this long is lost", absl::Milliseconds(100));
  set.Add("heartbeat-interval", &options.heartbeat_interval, "workers report their state at least this often",
          absl::Milliseconds(10));
  set.Add("probe-timeout", &options.probe_timeout, "limit of one probe of a pair of workers", absl::Milliseconds(100));

  set.AddChoice("placement", &options.placement, {"prefix", "least-loaded", "round-robin"},
                "prefix: the pair that is estimated to decode soonest, cached prefixes considered; "
                "least-loaded: the same without cached prefixes; round-robin: pairs in turn");
  set.Add("max-local-prefill-tokens", &options.max_local_prefill_tokens,
          "most uncached tokens of a prompt that a decode worker of role both computes while prefill workers are ready",
          0);

  set.AddChoice("pins", &options.pins, {"on", "off"},
                "off: refuse requests that name their workers, as those of `baton verify` and `baton doctor` do");

  set.AddChoice(
      "role-changes", &options.role_changes, {"off", "on", "forced"},
      "which changes of workers' roles clients may ask for, as `baton admin role` does. on: those that leave a "
      "worker in each role and end no sequence; forced: with --force, also others");
  set.AddChoice("balance", &options.balance, {"off", "advise", "switch"},
                "advise: publish how many workers of each role the load wants; switch: also move workers between the "
                "roles prefill and decode");
  set.Add("balance-after", &options.balance_rules.after,
          "how long the load must call for a change of a worker's role before the change", absl::Milliseconds(100),
          absl::Hours(1));
  set.Add("balance-period", &options.balance_rules.period, "least time between two changes of workers' roles",
          absl::Milliseconds(100), absl::Hours(24));
  set.Add("balance-queue", &options.balance_rules.queue_target,
          "prompts that wait this long, on average over the prefill workers, are as much as the workers can take",
          absl::Milliseconds(1), absl::Hours(1));
  set.Add("balance-min-prefill", &options.balance_rules.min_prefill,
          "fewest prefill workers that are wanted, and that a change leaves", 1, 1 << 16);
  set.Add("balance-min-decode", &options.balance_rules.min_decode,
          "the same of decode workers, those of role both included", 1, 1 << 16);
  set.Add("ttft-slo", &options.ttft_slo,
          "objective for the time to first token of interactive requests without an objective of their own. With "
          "--when-late "
          "refuse, requests that would miss it because of the load are refused; "
          "0: none",
          absl::ZeroDuration(), absl::Hours(1));
  set.Add("tpot-slo", &options.tpot_slo,
          "objective for the time per output token of such requests; workers cut prompts into chunks that leave "
          "sequences that "
          "time; 0: none",
          absl::ZeroDuration(), absl::Hours(1));

  set.AddList("model-slo", &options.model_slos,
              "MODEL=TTFT/TPOT, such as llama=500ms/30ms: the objectives of one model instead of --ttft-slo and "
              "--tpot-slo");
  set.AddChoice("when-late", &options.when_late, {"refuse", "serve"},
                "a request that would miss an objective because of the load: refuse it with a retry hint, or serve it "
                "with priority batch; requests may choose for themselves");

  set.Add("max-requests", &options.max_requests, "requests in flight; more get RESOURCE_EXHAUSTED", 1, 1 << 20);
  set.Add("max-attempts", &options.max_attempts,
          "failed attempts of one request before it fails (preemptions not counted)", 1, 1000);
  set.Add("max-prompt-tokens", &options.max_prompt_tokens, "longest prompt; 0: the model's limit", 0);
  set.Add("max-message-bytes", &options.max_message_bytes, "largest message of a client");
  set.Add("default-deadline", &options.default_deadline, "deadline of a request without a deadline of its own",
          absl::Milliseconds(1));
  set.Add("overload-wait", &options.overload_wait,
          "how long a request waits for room when every worker is full; 0: not at all");
  set.Add(
      "placement-wait", &options.placement_wait,
      "how long a request waits for a live pair of workers to become ready, and a request that has begun for a lost "
      "pair to return; 0: not at all");
  set.Add(
      "drain-delay", &options.drain_delay,
      "on SIGTERM, how long the router serves on while health checks fail, so that load balancers send no new clients",
      absl::ZeroDuration(), absl::Hours(24));
  set.Add("drain-timeout", &options.drain_timeout, "after drain-delay, how long running requests may take to finish");

  set.Add("trace-endpoint", &options.trace_endpoint,
          "URL of an OpenTelemetry collector (OTLP over HTTP), such as http://127.0.0.1:4318/v1/traces (default: "
          "nothing is sent)");
  set.Add("trace-sample", &options.trace_sample,
          "share of the requests whose traces are sent; a client's traceparent decides for its own requests", 0, 1);

  set.AddChoice("log.level", &options.log.level, {"debug", "info", "warning", "error"}, "least level in the log");
  set.AddChoice("log.format", &options.log.format, {"text", "json"}, "form of a log line");
  set.AddPresets("preset", &options.preset,
                 {{"chat",
                   "people read along. Under load, some requests are refused so that the others are in time",
                   {{"ttft-slo", "2s"}, {"tpot-slo", "50ms"}, {"when-late", "refuse"}}},
                  {"balanced",
                   "nobody is refused for being late. Under load, late requests wait behind the others",
                   {{"ttft-slo", "5s"}, {"tpot-slo", "100ms"}, {"when-late", "serve"}}},
                  {"batch",
                   "no objectives, and requests wait for room, however long",
                   {{"overload-wait", "1h"}, {"default-deadline", "24h"}}}});
}

absl::Status CheckOptions(const RouterOptions& options) {
  const DiscoveryOptions& discovery = options.discovery;
  if (discovery.workers.empty() && discovery.workers_file.empty()) {
    return absl::InvalidArgumentError(
        "workers: none given; expected at least one, e.g. --workers 127.0.0.1:50061, or --workers-file");
  }
  absl::flat_hash_set<std::string> seen;
  for (const std::string& entry : discovery.workers) {
    BATON_RETURN_IF_ERROR(OfOption("workers", ParseWorkerSource(entry)).status());
    if (!seen.insert(entry).second) {
      return absl::InvalidArgumentError(absl::StrCat("workers: ", entry, " is listed twice"));
    }
  }
  BATON_RETURN_IF_ERROR(OfOption("dns-servers", CheckDnsOptions(discovery.dns)));
  BATON_RETURN_IF_ERROR(OfOption("listen", ParseHostPort(options.listen)).status());
  if (!options.metrics_listen.empty()) {
    BATON_RETURN_IF_ERROR(OfOption("metrics-listen", ParseHostPort(options.metrics_listen)).status());
  }
  BATON_RETURN_IF_ERROR(OfOption("model-slo", DefaultObjectives::Parse({}, options.model_slos)).status());
  if (options.heartbeat_interval * 2 > options.peer_timeout) {
    return absl::InvalidArgumentError(
        absl::StrCat("heartbeat-interval: ", absl::FormatDuration(options.heartbeat_interval),
                     "; expected at most half of peer-timeout (", absl::FormatDuration(options.peer_timeout), ")"));
  }
  constexpr uint64_t kMaxMessageBytes = 1 << 30;
  if (options.max_message_bytes.bytes == 0 || options.max_message_bytes.bytes > kMaxMessageBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("max-message-bytes: ", options.max_message_bytes.bytes, "; expected 1 to ", kMaxMessageBytes));
  }
  return absl::OkStatus();
}

}  // namespace baton::router
