#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the table of placement policies.
set -euo pipefail
# shellcheck source=tests/bench/tables/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

runs=1
options "Sends 1000 requests of a trace to four prefill and four decode workers that compute nothing (--device replay).
The trace is BATON_SHARED/traces/mooncake_conversation.jsonl; docs/testing.md describes BATON_SHARED." "$@"
need bin/baton bin/baton-router bin/baton-prefill bin/baton-decode
trace=${BATON_SHARED:-}/traces/mooncake_conversation.jsonl
[[ -s $trace ]] || die "$trace is missing." "BATON_SHARED must name a folder with the trace; docs/testing.md describes it."

# measure ROLE PREFIX-CACHE PLACEMENT: replays the trace, and notes the results.
measure() {
  local key=$* number
  local replay=(--model "$root/models/demo-chat" --device replay --replay-step 5ms --replay-prefill-speed 3000
    --page-tokens 8 --kv-memory 256MiB --prefix-cache "$2")
  for number in 1 2 3 4; do worker prefill "$number" "${replay[@]}"; done
  for number in 5 6 7 8; do worker "$1" "$number" "${replay[@]}"; done
  router --placement "$3"
  "$build/bin/baton" bench serve --target "$target" --trace "$trace" --trace-scale 0.015625 --trace-speed 10 \
    --requests 1000 --json >"$work/out"
  stop_all
  sample_json "$key completed" "r['completed']" <"$work/out"
  sample_json "$key cached" "100 * r['cached_prompt_tokens'] / r['all_prompt_tokens']" <"$work/out"
  for value in mean p50 p95 p99; do sample_json "$key $value" "1e3 * r['ttft_seconds']['$value']" <"$work/out"; done
}

header "decode workers" "\`--prefix-cache\`" "\`--placement\`" completed "prompt tokens cached, %" "TTFT, ms, mean" \
  p50 p95 p99
while read -r role cache placement; do
  for ((run = 0; run < runs; ++run)); do measure "$role" "$cache" "$placement"; done
  key="$role $cache $placement"
  row "\`--role $role\`" "$cache" "$placement" "$(cell %.0f "$key completed")" "$(cell %.1f "$key cached")" \
    "$(cell %.0f "$key mean")" "$(cell %.0f "$key p50")" "$(cell %.0f "$key p95")" "$(cell %.0f "$key p99")"
done <<'END'
decode on prefix
decode on least-loaded
decode on round-robin
decode off least-loaded
both on prefix
both on least-loaded
END
