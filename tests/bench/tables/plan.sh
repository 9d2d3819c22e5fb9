#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the table that compares simulated deployments with measured deployments.
set -euo pipefail
# shellcheck source=tests/bench/tables/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

runs=1
options "Profiles a model of the 110M shape on one thread. Then workers replay the profile, and \`baton plan\` simulates the same
workers, with the same requests at the same times: the lengths of Azure's conversation trace, a quarter each. A request is
within its objectives if the first token comes within TTFT (default: 1.3s), and each further token takes TPOT (default:
22ms) or less on the mean.
The trace is BATON_SHARED/traces/azure_llm_2023_conv.csv; docs/testing.md describes BATON_SHARED.
DEPLOYMENTS (default: \"1-1-0 0-0-2 1-0-1\", numbers of prefill, decode and both), RATES (default: \"4 6 8\") and
REQUESTS (default: 300, the least) change the table. PROFILE names a profile in place of a new one. WORKERS=compute computes the
model, with a CPU for each worker, in place of replaying." "$@"
need bin/baton bin/baton-router bin/baton-prefill bin/baton-decode
trace=${BATON_SHARED:-}/traces/azure_llm_2023_conv.csv
[[ -s $trace ]] || die "$trace is missing." "BATON_SHARED must name a folder with the trace; docs/testing.md describes it."
ttft=${TTFT:-1.3s}
tpot=${TPOT:-22ms}
requests=${REQUESTS:-300}

model=$build/tables/110m-q8_0.gguf
if [[ ! -e $model ]]; then
  mkdir -p "$build/tables"
  "$build/bin/baton" models make --preset 110m --dtype q8_0 --out "$model" >&2
fi
profile=${PROFILE:-$work/profile.json}
if [[ -z ${PROFILE:-} ]]; then
  "$build/bin/baton" bench engine --model "$model" --threads 1 --sequences 1,2,4,8,16,32 --repeats 5 \
    --profile "$profile" | sed '/^$/q' >&2
fi

# deploy PREFILL DECODE BOTH
deploy() {
  local number=0 role i args=(--model "$model" --kv-memory 512MiB --kv-dtype bf16)
  case ${WORKERS:-replay} in
    replay) args+=(--device replay --replay-profile "$profile") ;;
    compute) args+=(--threads 1) ;;
    *) die "unknown WORKERS $WORKERS" ;;
  esac
  for role in prefill decode both; do
    for ((i = 0; i < $1; ++i)); do
      local pinned=()
      [[ ${WORKERS:-replay} == replay ]] || pinned=(--cpus="$((number % $(nproc)))")
      worker "$role" "$((++number))" "${args[@]}" "${pinned[@]}"
    done
    shift
  done
  router --log.level=warning --ttft-slo="$ttft" --tpot-slo="$tpot"
}

# load RATE: prints the options that the measurement and the simulation share.
load() {
  printf '%s\n' --trace "$trace" --trace-scale 0.25 --too-long cut --rate "$1" --seed "$run" --slo "ttft=$ttft,tpot=$tpot" --json
}

# measure DEPLOYMENT RATE
measure() {
  local key="$1 $2" arguments
  mapfile -t arguments < <(load "$2")
  IFS=- read -r p d b <<<"$1"
  "$build/bin/baton" plan --profile "$profile" "${arguments[@]}" --seconds "$(awk "BEGIN { print $requests / $2 }")" \
    --prefill "$p" --decode "$d" --both "$b" >"$work/out"
  local at="r['deployments'][0]['at_rate']"
  sample_json "$key simulated met" "100 * $at['attained']" <"$work/out"
  sample_json "$key simulated ttft" "1e3 * $at['ttft_p50']" <"$work/out"
  sample_json "$key simulated tpot" "1e3 * $at['tpot_p50']" <"$work/out"
  deploy "$p" "$d" "$b"
  "$build/bin/baton" bench serve --target "$target" "${arguments[@]}" --requests "$requests" --arrivals poisson \
    --warmup "$((requests / 10))" >"$work/out" 2>"$work/err" || die "bench serve failed." "$(cat "$work/err")"
  stop_all
  sample_json "$key measured met" "100 * r['slo']['attained']" <"$work/out"
  sample_json "$key measured ttft" "1e3 * r['ttft_seconds']['p50']" <"$work/out"
  sample_json "$key measured tpot" "1e3 * r['tpot_seconds']['p50']" <"$work/out"
  say "$1 at $2/s: measured $(cell %.1f "$key measured met"), simulated $(cell %.1f "$key simulated met")"
}

read -ra rates <<<"${RATES:-4 6 8}"
read -ra deployments <<<"${DEPLOYMENTS:-1-1-0 0-0-2 1-0-1}"
for ((run = 0; run < runs; ++run)); do
  for deployment in "${deployments[@]}"; do
    for rate in "${rates[@]}"; do measure "$deployment" "$rate"; done
  done
done
header "prefill, decode, both" "requests/s" "within both, %, measured" simulated "TTFT p50, ms, measured" simulated \
  "TPOT p50, ms, measured" simulated
for deployment in "${deployments[@]}"; do
  for rate in "${rates[@]}"; do
    key="$deployment $rate"
    row "${deployment//-/, }" "$rate" "$(cell %.1f "$key measured met")" "$(cell %.1f "$key simulated met")" \
      "$(cell %.0f "$key measured ttft")" "$(cell %.0f "$key simulated ttft")" \
      "$(cell %.1f "$key measured tpot")" "$(cell %.1f "$key simulated tpot")"
  done
done
