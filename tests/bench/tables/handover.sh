#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the tables of what handing over costs a request, and what the prefix cache and live migration do for it.
set -euo pipefail
# shellcheck source=tests/bench/tables/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

options "Measures a prompt of 1024 tokens that is handed over or not, the prompt again, and an answer that migrates.
Prefill on CPU 0, decode on CPU 1; the shape of TinyLlama 1.1 B in Q8_0. The migrating answer is replayed." "$@"
need bin/baton bin/baton-router bin/baton-prefill bin/baton-decode
common=(--model "$(model q8_0)" --kv-memory=256MiB --log.level=debug)

# ask KEY IDS: sends token ids, and notes the answer's timings.
ask() {
  generate --token-ids "$2" --max-tokens 2 >"$work/answer"
  sample_json "$1 prefill" "r['finish']['timings']['prefill_seconds']" <"$work/answer"
  sample_json "$1 ttft" "r['finish']['timings']['ttft_seconds']" <"$work/answer"
  sample_json "$1 exposed" "1e3 * r['finish']['timings']['transfer_exposed_seconds']" <"$work/answer"
  sample_json "$1 second" "1e3 * r['finish']['timings']['tpot_seconds']" <"$work/answer"
  sample_json "$1 cached" "r['finish']['usage']['cached_prompt_tokens']" <"$work/answer"
  sample_json "$1 MB" "int(r['finish']['attempts'][-1]['kv_bytes']) / 1e6" <"$work/answer"
}

for ((run = 0; run < runs; ++run)); do
  for path in local shm tcp; do
    if [[ $path == local ]]; then
      worker both 1 "${common[@]}" --cpus=0
    else
      worker prefill 1 "${common[@]}" --cpus=0 --transport="$path"
      worker decode 2 "${common[@]}" --cpus=1 --transport="$path"
    fi
    router --log.level=debug
    ask "$path" "$(seq -s, 100 1123)"
    ask "$path again" "$(seq -s, 100 1123)"
    ask "$path longer" "$(seq -s, 100 1127)"
    stop_all
  done
done
header "prompt of 1024 tokens" "KV, MB" "prefill, s" "TTFT, s" "exposed transfer, ms" "first to second token, ms"
while read -r path name; do
  row "$name" "$(cell %.1f "$path MB")" "$(cell %.2f "$path prefill")" "$(cell %.2f "$path ttft")" \
    "$(cell %.1f "$path exposed")" "$(cell %.0f "$path second")"
done <<'END'
local not handed over
shm handed over through shared memory
tcp handed over by TCP
END
header "shared memory" "prompt tokens cached" "TTFT, ms" "KV handed over, MB"
while read -r key name; do
  key=${key//-/ }
  row "$name" "$(cell %.0f "$key cached")" "$(cell %.0f "$key ttft" 1000)" "$(cell %.1f "$key MB")"
done <<'END'
shm the prompt for the first time
shm-again the same prompt again
shm-longer the prompt with 4 more tokens
END

# logged FIELD: prints a duration of the log line on the standard input, in ms.
logged() {
  awk -v RS=' ' -F= -v field="$1" '$1 == field { print ($2 ~ /us/ ? 1e-3 : $2 ~ /[0-9]s/ ? 1e3 : 1) * $2 }'
}

for ((run = 0; run < runs; ++run)); do
  for path in shm tcp; do
    replay=("${common[@]}" --device replay --replay-step 20ms --transport="$path")
    worker prefill 1 "${replay[@]}"
    worker decode 2 "${replay[@]}"
    worker decode 3 "${replay[@]}"
    router --log.level=debug
    generate --token-ids "$(seq -s, 100 4195)" --max-tokens 200 >"$work/answer" &
    answer=$!
    sleep 2
    # The last attempt before the migration: earlier attempts were probes.
    source=$(sed -n 's/.* attempt.started .*decode=\([^ ]*\).*/\1/p' "$work/router.log" | tail -n 1)
    kill "${pids[$source]}"
    wait "$answer"
    sample_json "$path pause" "1e3 * r['finish']['attempts'][-1]['pause_seconds']" <"$work/answer"
    sample_json "$path tpot" "1e3 * r['finish']['timings']['tpot_seconds']" <"$work/answer"
    sample_json "$path migrated MB" "int(r['finish']['attempts'][-1]['kv_bytes']) / 1e6" <"$work/answer"
    for field in transfer at_rest; do
      sample "$path $field" "$(grep attempt.migrated "$work/$source.log" | logged "$field")"
    done
    stop_all
  done
done
header "migration of a running answer" "KV, MB" "transfer, ms" "at rest, ms" "pause of the client, ms" \
  "between other tokens, ms"
for path in shm tcp; do
  row "$path" "$(cell %.0f "$path migrated MB")" "$(cell %.0f "$path transfer")" "$(cell %.1f "$path at_rest")" \
    "$(cell %.0f "$path pause")" "$(cell %.0f "$path tpot")"
done
