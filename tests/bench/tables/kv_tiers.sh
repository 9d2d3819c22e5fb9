#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the tables of KV tiers.
set -euo pipefail
# shellcheck source=tests/bench/tables/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

runs=1
options "Sends the first requests of a trace to one worker of --role both whose pool has a tenth of the trace's working set:
without tiers, with a memory tier, with a file tier, and again after a restart on that file. That worker computes nothing
(--device replay). A second table has the time to the first token of prompts that a model of the 110M shape computes or
loads on one thread, one prompt at a time. BATON_TIER_FOLDER is the folder of the file
(default: a folder for temporary files); a tmpfs would not measure a disk. REQUESTS changes the
number of the trace's requests. The trace is
BATON_SHARED/traces/mooncake_conversation.jsonl; docs/testing.md describes BATON_SHARED." "$@"
need bin/baton bin/baton-router bin/baton-decode
trace=${BATON_SHARED:-}/traces/mooncake_conversation.jsonl
[[ -s $trace ]] || die "$trace is missing." "BATON_SHARED must name a folder with the trace; docs/testing.md describes it."
file=$(mktemp -d -p "${BATON_TIER_FOLDER:-${TMPDIR:-/tmp}}")/tier
trap 'stop_all; rm -rf "$work" "${file%/*}"' EXIT

# Of the scaled trace: a block of 512 tokens is a page of 8 tokens.
scale=0.015625
page_tokens=8

# working_set REQUESTS: prints how many pages the prompts of the first REQUESTS requests have, each page counted once.
working_set() {
  python3 - "$trace" "$1" <<'END'
import itertools, json, sys
with open(sys.argv[1], encoding="utf-8") as trace:
    print(len({block for line in itertools.islice(trace, int(sys.argv[2])) for block in json.loads(line)["hash_ids"]}))
END
}

# measure KEY REQUESTS SPEED WORKER-OPTION...: replays the trace on a new worker, and notes the results.
measure() {
  local key=$1 requests=$2 speed=$3
  shift 3
  worker both 1 --page-tokens "$page_tokens" "$@"
  router
  # Each run sends the same prompts without a salt of its own, as the restarted worker must find them.
  "$build/bin/baton" bench serve --target "$target" --trace "$trace" --trace-scale "$scale" --trace-speed "$speed" \
    --requests "$requests" --reuse-cache --too-long drop --json >"$work/out"
  stop_all
  sample_json "$key completed" "r['completed']" <"$work/out"
  sample_json "$key cached" "100 * r['cached_prompt_tokens'] / r['all_prompt_tokens']" <"$work/out"
  for value in mean p50 p95; do sample_json "$key $value" "1e3 * r['ttft_seconds']['$value']" <"$work/out"; done
}

# table NAME REQUESTS SPEED PAGE-BYTES WORKER-OPTION...: measures all rows, and prints the table.
table() {
  local name=$1 requests=$2 speed=$3 page_bytes=$4 pages tier run key
  shift 4
  pages=$(working_set "$requests")
  # Room for all prompts and their answers, which are short.
  tier=$((pages * 6 / 5 * page_bytes / 1048576 + 64))MiB
  for ((run = 0; run < runs; ++run)); do
    rm -f "$file"
    measure "$name none" "$requests" "$speed" --pages $((pages / 10)) "$@"
    measure "$name memory" "$requests" "$speed" --pages $((pages / 10)) --kv-tier-memory "$tier" "$@"
    measure "$name file" "$requests" "$speed" --pages $((pages / 10)) --kv-tier-file "$file" --kv-tier-file-size "$tier" "$@"
    measure "$name restarted" "$requests" "$speed" --pages $((pages / 10)) --kv-tier-file "$file" --kv-tier-file-size "$tier" "$@"
    measure "$name all" "$requests" "$speed" --pages $((pages * 6 / 5)) "$@"
  done
  header "$name: $pages pages of $page_bytes bytes in the working set" completed "prompt tokens cached, %" \
    "TTFT, ms, mean" p50 p95
  while IFS='|' read -r key words; do
    key="$name $key"
    row "$words" "$(cell %.0f "$key completed")" "$(cell %.1f "$key cached")" "$(cell %.0f "$key mean")" \
      "$(cell %.0f "$key p50")" "$(cell %.0f "$key p95")"
  done <<'END'
none|a tenth in the pool, no tier
memory|a tenth in the pool, `--kv-tier-memory`
file|a tenth in the pool, `--kv-tier-file`
restarted|the same after a restart, the same requests again
all|all in the pool, no tier
END
}

# The demo model's KV has 3072 bytes a token.
table replay "${REQUESTS:-1000}" 3 $((3072 * page_tokens)) \
  --model "$root/models/demo-chat" --device replay --replay-step 5ms --replay-prefill-speed 3000

model=$build/tables/110m-q8_0.gguf
if [[ ! -e $model ]]; then
  mkdir -p "$build/tables"
  "$build/bin/baton" models make --preset 110m --dtype q8_0 --out "$model" >&2
fi

# alone KEY: sends 20 prompts, one at a time and always the same, to the worker that runs, and notes the results of KEY.
alone() {
  "$build/bin/baton" bench serve --target "$target" --concurrency 1 --requests 20 --prompt-tokens 896 \
    --output-tokens 1 --seed 1 --reuse-cache --json >"$work/out"
  [[ -n $1 ]] || return 0
  sample_json "$1 cached" "100 * r['cached_prompt_tokens'] / r['all_prompt_tokens']" <"$work/out"
  for value in p50 p95; do sample_json "$1 $value" "1e3 * r['ttft_seconds']['$value']" <"$work/out"; done
}

# Pages of 16 tokens: 56 of a prompt, 1120 of all prompts. A pool of 160 pages has evicted a prompt when it comes again.
real() {
  worker both 1 --model "$model" --threads 1 "$@"
  router
}
for ((run = 0; run < runs; ++run)); do
  rm -f "$file"
  real --pages 160 --kv-tier-file "$file" --kv-tier-file-size 1GiB
  alone computed
  alone file
  stop_all
  real --pages 160 --kv-tier-file "$file" --kv-tier-file-size 1GiB
  alone restarted
  stop_all
  real --pages 160 --kv-tier-memory 1GiB
  alone ""
  alone memory
  stop_all
  real --pages 1300
  alone ""
  alone pool
  stop_all
done
header "a prompt of 896 tokens, 33 MB of KV" "prompt tokens cached, %" "TTFT, ms, p50" p95
while IFS='|' read -r key words; do
  row "$words" "$(cell %.1f "$key cached")" "$(cell %.0f "$key p50")" "$(cell %.0f "$key p95")"
done <<'END'
computed|computed
file|loaded from a file
restarted|loaded from a file after a restart
memory|loaded from memory
pool|in the pool
END
