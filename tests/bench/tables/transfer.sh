#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the tables of transports and handoffs.
set -euo pipefail
# shellcheck source=tests/bench/tables/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

options "Measures puts and messages between two processes, then handoffs beside bare puts of the same pages." "$@"
need bench/transport_bench bench/handoff_bench

for ((run = 0; run < runs; ++run)); do
  "$build/bench/transport_bench" 1 >"$work/transport" 2>"$work/log"
  while read -r path what size unit value rest; do
    path=${path#ucx:}
    case $what in
      put) sample "$path $size $unit" "$value" ;;
      message) sample "$path round trip" "${rest%% *}" ;; # "message round trip p50 75.1 us ..."
    esac
  done <"$work/transport"
done
header "puts, GB/s" "8 KiB" "64 KiB" "1 MiB" "round trip of a message, p50, us"
for path in tcp shm; do
  row "$path" "$(cell %.1f "$path 8 KiB")" "$(cell %.1f "$path 64 KiB")" "$(cell %.1f "$path 1024 KiB")" \
    "$(cell %.0f "$path round trip")"
done

header "46 MB of KV, ms" "bare puts" handoff "four handoffs at once: first, last"
"$build/bench/handoff_bench" $((20 * runs)) 2>"$work/log" | tail -n +3 | sed 's/in a row/in-a-row/' |
  while read -r path pages puts handoff _ first last _; do
    row "${path#ucx:}, pages ${pages//-/ }" "$puts" "$handoff" "$first ${last%,}"
  done
