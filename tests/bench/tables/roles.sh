#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the table of a load whose mix flips, without and with the balance controller.
set -euo pipefail
# shellcheck source=tests/bench/tables/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

runs=2
options "Three prefill and three decode workers replay steps of 20 ms and 2000 prompt tokens/s, with 16 batch slots each. For
PHASE seconds (default: 60) the requests have long prompts and short answers, at 7 requests/s: more than three prefill
workers compute, and less than four. Then they have short prompts and long answers, at 9 requests/s: more than three
decode workers carry, and less than four. A request is within its objectives if the first token comes within 2 s, and each
further token takes 30 ms or less on the mean. The controller waits for 5 s of pressure, and 15 s between two changes.
FLIPS (default: 1) more phases follow the first." "$@"
need bin/baton bin/baton-router bin/baton-prefill bin/baton-decode
phase=${PHASE:-60}
flips=${FLIPS:-1}
slo=ttft=2s,tpot=30ms

# Arrivals with exponential gaps, the same in every run. Azure's form of a trace.
python3 - "$phase" "$flips" >"$work/trace.csv" <<'END'
import datetime, random, sys
phase, flips = float(sys.argv[1]), int(sys.argv[2])
draw = random.Random(7)
print("TIMESTAMP,ContextTokens,GeneratedTokens")
start, now = datetime.datetime(2026, 1, 1), 0.0
for number in range(flips + 1):
    rate, prompt, output = ((7, 1000, 20), (9, 50, 300))[number % 2]
    while (now := now + draw.expovariate(rate)) < phase * (number + 1):
        at = start + datetime.timedelta(seconds=now)
        print(f"{at:%Y-%m-%d %H:%M:%S.%f},{prompt},{output}")
    now = phase * (number + 1)
END
requests=$(($(wc -l <"$work/trace.csv") - 1))

# measure MODE
measure() {
  local number=0 role i
  for role in prefill decode; do
    for ((i = 0; i < 3; ++i)); do
      worker "$role" "$((++number))" --model "$root/models/demo-chat" --device replay --replay-step 20ms \
        --replay-prefill-speed 2000 --max-sequences 16 --kv-memory 256MiB --role-cooldown 5s
    done
  done
  router --log.level=warning --ttft-slo=2s --tpot-slo=30ms --balance="$1" --balance-after=5s --balance-period=15s
  "$build/bin/baton" bench serve --target "$target" --trace "$work/trace.csv" --requests "$requests" --slo "$slo" \
    --json >"$work/out" 2>"$work/err" || die "bench serve failed." "$(cat "$work/err")"
  sample_json "$1 met" "100 * r['slo']['attained']" <"$work/out"
  sample_json "$1 ttft" "1e3 * r['ttft_seconds']['p95']" <"$work/out"
  sample_json "$1 tpot" "1e3 * r['tpot_seconds']['p95']" <"$work/out"
  "$build/bin/baton" status --target "$target" --json >"$work/status"
  sample_json "$1 changes" "sum(w.get('role_changes', 0) for w in r['workers'])" <"$work/status"
  stop_all
  say "$1: $(cell %.1f "$1 met") % within both, $(cell %.0f "$1 changes") changes"
}

for ((run = 0; run < runs; ++run)); do
  for mode in advise switch; do measure "$mode"; done
done
header "\`--balance\`" "within both, %" "TTFT p95, ms" "TPOT p95, ms" "changes of roles"
for mode in advise switch; do
  row "$mode" "$(cell %.1f "$mode met")" "$(cell %.0f "$mode ttft")" "$(cell %.1f "$mode tpot")" \
    "$(cell %.0f "$mode changes")"
done
