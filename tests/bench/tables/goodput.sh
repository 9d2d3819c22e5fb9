#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the table of goodput: the share of requests within both objectives, by deployment and rate.
set -euo pipefail
# shellcheck source=tests/bench/tables/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

runs=1
options "Sends requests with the lengths of Azure's conversation trace, a quarter each, to workers of the 110M shape on two
CPUs. A request is within its objectives if the first token comes within TTFT (default: 1.3s), and each further token
takes TPOT (default: 22ms) or less on the mean. Choose about 5 and 3 times what an idle deployment takes. Requests that are
longer than the model's context are sent, and count as missed.
The trace is BATON_SHARED/traces/azure_llm_2023_conv.csv; docs/testing.md describes BATON_SHARED.
RATES (default: \"1 2 4\"), DEPLOYMENTS (default: all) and SECONDS_EACH (default: 60) narrow the table." "$@"
need bin/baton bin/baton-router bin/baton-prefill bin/baton-decode
trace=${BATON_SHARED:-}/traces/azure_llm_2023_conv.csv
[[ -s $trace ]] || die "$trace is missing." "BATON_SHARED must name a folder with the trace; docs/testing.md describes it."
ttft=${TTFT:-1.3s}
tpot=${TPOT:-22ms}

# deploy DEPLOYMENT
deploy() {
  local options=(--model "$model" --kv-memory 512MiB --kv-dtype bf16)
  case $1 in
    disaggregated) worker prefill 1 "${options[@]}" --cpus=0; worker decode 2 "${options[@]}" --cpus=1 ;;
    both) worker both 1 "${options[@]}" --cpus=0,1 ;;
    mixed*) worker prefill 1 "${options[@]}" --cpus=0; worker both 2 "${options[@]}" --cpus=1 ;;
    *) die "unknown deployment $1" ;;
  esac
  case $1 in
    *-unaware) router --log.level=warning ;;
    *) router --log.level=warning --ttft-slo="$ttft" --tpot-slo="$tpot" ;;
  esac
}

# measure DEPLOYMENT RATE
measure() {
  deploy "$1"
  "$build/bin/baton" bench serve --target "$target" --trace "$trace" --trace-scale 0.25 --rate "$2" \
    --requests "$(awk "BEGIN { print int($2 * ${SECONDS_EACH:-60}) }")" --warmup 5 --seed "$run" \
    --slo "ttft=$ttft,tpot=$tpot" --json >"$work/out" 2>/dev/null
  stop_all
  sample_json "$1 $2 met" "100 * r['slo']['attained']" <"$work/out"
  sample_json "$1 $2 ttft" "100 * r['slo']['ttft_attained']" <"$work/out"
  sample_json "$1 $2 tpot" "100 * r['slo']['tpot_attained']" <"$work/out"
  sample_json "$1 $2 p99" "1e3 * r['itl_seconds']['p99']" <"$work/out"
  sample_json "$1 $2 p50" "1e3 * r['itl_seconds']['p50']" <"$work/out"
  say "$1 at $2/s: $(tail -n 1 <<<"${samples[$1 $2 met]%$'\n'}") %"
}

model=$build/tables/110m-q8_0.gguf
if [[ ! -e $model ]]; then
  mkdir -p "$build/tables"
  "$build/bin/baton" models make --preset 110m --dtype q8_0 --out "$model" >&2
fi
read -ra rates <<<"${RATES:-1 2 4}"
read -ra deployments <<<"${DEPLOYMENTS:-disaggregated both mixed mixed-unaware}"
for ((run = 0; run < runs; ++run)); do
  for rate in "${rates[@]}"; do
    for deployment in "${deployments[@]}"; do measure "$deployment" "$rate"; done
  done
done
header deployment "requests/s" "within both, %" "TTFT, %" "TPOT, %" "ITL p50, ms" "p99"
for rate in "${rates[@]}"; do
  for deployment in "${deployments[@]}"; do
    key="$deployment $rate"
    row "$deployment" "$rate" "$(cell %.1f "$key met")" "$(cell %.1f "$key ttft")" "$(cell %.1f "$key tpot")" \
      "$(cell %.1f "$key p50")" "$(cell %.0f "$key p99")"
  done
done
