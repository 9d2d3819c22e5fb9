#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the tables of overload and batching: requests within both objectives, by rate, on workers that replay.
set -euo pipefail
# shellcheck source=tests/bench/tables/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

options "Sends requests with the lengths of Azure's conversation trace, a quarter each, to workers that replay a constant
step of 10 ms and 4000 prompt tokens per second. Objectives: 500 ms to the first token, 30 ms per further token.
The first table has one prefill and one decode worker. The router either knows the objectives or does not.
The second table has one worker of role both, and compares how prompts that wait may start.
The trace is BATON_SHARED/traces/azure_llm_2023_conv.csv; docs/testing.md describes BATON_SHARED.
RATES (default: \"10 14 42 140\") and SECONDS_EACH (default: 30) change the runs." "$@"
need bin/baton bin/baton-router bin/baton-prefill bin/baton-decode
trace=${BATON_SHARED:-}/traces/azure_llm_2023_conv.csv
[[ -s $trace ]] || die "$trace is missing." "BATON_SHARED must name a folder with the trace; docs/testing.md describes it."
replay=(--model "$root/models/demo-chat" --device replay --replay-step=10ms --replay-prefill-speed=4000 --kv-memory 256MiB)

# measure KEY RATE ROUTER-OPTION...
measure() {
  local key="$1 $2" rate=$2
  shift 2
  router --log.level=error "$@"
  "$build/bin/baton" bench serve --target "$target" --trace "$trace" --trace-scale 0.25 --too-long drop \
    --rate "$rate" --requests "$(awk "BEGIN { print int($rate * ${SECONDS_EACH:-30}) }")" --seed "$run" \
    --slo ttft=500ms,tpot=30ms --json >"$work/out" 2>/dev/null
  stop_all
  sample_json "$key met" "100 * r['slo']['attained']" <"$work/out"
  sample_json "$key goodput" "r['slo']['goodput_requests_per_second']" <"$work/out"
  sample_json "$key ttft" "1e3 * r['ttft_seconds']['p95']" <"$work/out"
  say "$key: $(tail -n 1 <<<"${samples[$key met]%$'\n'}") %"
}

slo=(--ttft-slo=500ms --tpot-slo=30ms)
read -ra rates <<<"${RATES:-10 14 42 140}"
batchings=(continuous window static)
for ((run = 0; run < runs; ++run)); do
  for rate in "${rates[@]}"; do
    worker prefill 1 "${replay[@]}"; worker decode 2 "${replay[@]}"; measure aware "$rate" "${slo[@]}"
    worker prefill 1 "${replay[@]}"; worker decode 2 "${replay[@]}"; measure unaware "$rate"
  done
  for batching in "${batchings[@]}"; do
    worker both 1 "${replay[@]}" --batching="$batching"; measure "$batching" 4
    worker both 1 "${replay[@]}" --batching="$batching"; measure "$batching" 8
  done
done
header "requests/s" "within both, %" "goodput, requests/s" "TTFT p95, ms" "without objectives: within both, %" "goodput" "TTFT p95, ms"
for rate in "${rates[@]}"; do
  row "$rate" "$(cell %.1f "aware $rate met")" "$(cell %.1f "aware $rate goodput")" "$(cell %.0f "aware $rate ttft")" \
    "$(cell %.1f "unaware $rate met")" "$(cell %.1f "unaware $rate goodput")" "$(cell %.0f "unaware $rate ttft")"
done
header batching "4/s: within both, %" "TTFT p95, ms" "8/s: within both, %" "TTFT p95, ms"
for batching in "${batchings[@]}"; do
  row "$batching" "$(cell %.1f "$batching 4 met")" "$(cell %.0f "$batching 4 ttft")" "$(cell %.1f "$batching 8 met")" \
    "$(cell %.0f "$batching 8 ttft")"
done
