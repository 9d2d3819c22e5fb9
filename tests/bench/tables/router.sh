#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the tables of the router's cost.
set -euo pipefail
# shellcheck source=tests/bench/tables/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

options "Measures what a router adds to each token of 500 open streams.
The router has CPU 0, worker and clients have the other CPUs." "$@"
need bench/router_bench bin/baton-router
others=1-$(($(nproc --all) - 1))
[[ $others != 1-0 ]] || die "this measurement needs two CPUs."

rates=(4 10 20)
for ((run = 0; run < runs; ++run)); do
  for rate in "${rates[@]}"; do
    taskset -c "$others" "$build/bench/router_bench" --cpu=0 --streams=500 --rate="$rate" --seconds=5 >"$work/out"
    for way in direct "through router"; do
      line=$(grep "^$way" "$work/out")
      for percentile in p50 p99; do
        [[ $line =~ $percentile\ +([0-9]+) ]] && sample "$rate $way $percentile" "${BASH_REMATCH[1]}"
      done
    done
    numbers=$(sed -n 's/^router: \([0-9.]*\) us .* \([0-9.]*\) us per request, \([0-9.]*\) KB.*/\1 \2 \3/p' "$work/out")
    read -r token request stream <<<"$numbers"
    sample "$rate token" "$token"
    sample "$rate request" "$request"
    sample "$rate stream" "$stream"
  done
done

header "tokens/s" "worker to client, us, p50, direct" "through the router" "p99, direct" "through the router" \
  "router's CPU time, us per token" "us per request" "KB per open stream"
for rate in "${rates[@]}"; do
  row "$((500 * rate))" "$(cell %.0f "$rate direct p50")" "$(cell %.0f "$rate through router p50")" \
    "$(cell %.0f "$rate direct p99")" "$(cell %.0f "$rate through router p99")" \
    "$(cell %.0f "$rate token")" "$(cell %.0f "$rate request")" "$(cell %.0f "$rate stream")"
done
