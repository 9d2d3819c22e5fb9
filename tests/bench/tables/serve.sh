#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the tables of a running deployment and of a worker's start.
set -euo pipefail
# shellcheck source=tests/bench/tables/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

options "Measures the demo model under a Poisson load, then how a worker of the shape of TinyLlama 1.1 B starts.
The load meets a router, a prefill worker on CPU 0 and a decode worker on CPU 1." "$@"
need bin/baton bin/baton-router bin/baton-prefill bin/baton-decode

for ((run = 0; run < runs; ++run)); do
  worker prefill 1 --model "$root/models/demo-chat" --cpus=0
  worker decode 2 --model "$root/models/demo-chat" --cpus=1
  router --log.level=info
  "$build/bin/baton" bench serve --target "$target" --rate 8 --requests 120 --prompt-tokens 256 --output-tokens 64 \
    --json >"$work/out"
  stop_all
  sample_json completed "r['completed']" <"$work/out"
  for what in ttft tpot itl end_to_end; do
    for value in mean p50 p95 p99; do
      sample_json "$what $value" "1e3 * r['${what}_seconds']['$value']" <"$work/out"
    done
  done
done
header "$(cell %.0f completed) of 120 requests, ms" mean p50 p95 p99
for what in ttft tpot itl end_to_end; do
  row "${what//_/ }" "$(cell %.2f "$what mean")" "$(cell %.2f "$what p50")" "$(cell %.2f "$what p95")" \
    "$(cell %.2f "$what p99")"
done

for type in q8_0 q4_0; do
  for prefault in on off; do
    key="$type $prefault"
    for ((run = 0; run < runs; ++run)); do
      began=$EPOCHREALTIME
      worker both 1 --model "$(model "$type")" --threads 2 --kv-memory 256MiB --prefault "$prefault"
      sample "$key start" "$(awk "BEGIN { print $EPOCHREALTIME - $began }")"
      router --log.level=info
      for prompt in first second; do
        begin=$((${#prompt} * 1000)) # other tokens, so that nothing is cached
        generate --token-ids "$(seq -s, $begin $((begin + 255)))" --max-tokens 2 >"$work/answer"
        sample_json "$key $prompt" "1e3 * r['finish']['timings']['ttft_seconds']" <"$work/answer"
      done
      sample "$key memory" "$(sed -n 's/^VmHWM:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/${pids[both-1]}/status")"
      stop_all
    done
  done
done
header weights "\`--prefault\`" "start to serving, s" "peak memory, GB" "TTFT of 256 tokens, ms, first request" \
  "second request"
for type in q8_0 q4_0; do
  for prefault in on off; do
    key="$type $prefault"
    row "${type^^}" "$prefault" "$(cell %.1f "$key start")" "$(cell %.2f "$key memory" 1.024e-6)" \
      "$(cell %.0f "$key first")" "$(cell %.0f "$key second")"
  done
done
