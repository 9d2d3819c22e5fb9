#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the table of what quantization costs.
set -euo pipefail
# shellcheck source=tests/bench/tables/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

options "Measures the perplexity of the demo model by type of weights and KV cache. Every run gives the same." "$@"
need bin/baton

kv_types=(f32 f16 bf16 int8 fp8)
head=(weights MB)
rows=()
for weights in off int8 int4; do
  cells=()
  for kv in "${kv_types[@]}"; do
    "$build/bin/baton" perplexity --model "$root/models/demo-chat" --text "$root/tests/golden/demo/heldout.txt" \
      --threads "$(nproc)" --quantize "$weights" --kv-dtype "$kv" --json >"$work/out"
    sample_json "$weights $kv" "r['perplexity']" <"$work/out"
    sample_json "$weights MB" "r['weight_bytes'] / 1e6" <"$work/out"
    sample_json "$kv bytes" "r['kv_bytes_per_token']" <"$work/out"
    cells+=("$(cell %.4f "$weights $kv")")
  done
  rows+=("$(row "\`--quantize $weights\`" "$(cell %.2f "$weights MB")" "${cells[@]}")")
done
for kv in "${kv_types[@]}"; do head+=("$kv KV, $(cell %.0f "$kv bytes") bytes per token"); done
header "${head[@]}"
printf '%s\n' "${rows[@]}"
