#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the tables of the CPU kernels.
set -euo pipefail
# shellcheck source=tests/bench/tables/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

options "Measures products and attention with this CPU's best kernels, and the demo model with every family of kernels.
One thread. If the build has onednn_bench (Debian's package libdnnl-dev), the products of oneDNN follow." "$@"
need bin/baton bench/kernels_bench bench/model_bench
families=(scalar avx2 avx512 avx512-vnni avx512-bf16)

short=--benchmark_min_time=0.1
best=$("$build/bin/baton" bench engine --model "$root/models/demo-chat" --prompt-tokens 16 --sequences 1 \
  --context-tokens 16 --output-tokens 1 --repeats 1 --json |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["kernels"])')

sample_benchmarks kernels_bench "$short" --benchmark_filter="MatMul/(BF16|Q8_0|Q4_0)/$best/rows:(1|8|64|512)/threads:1"
header "$best, products, GFLOP/s or GOP/s" "1 row" "8 rows" "64 rows" "512 rows"
for type in BF16 Q8_0 Q4_0; do
  cells=()
  for rows in 1 8 64 512; do cells+=("$(cell %.0f "MatMul/$type/$best/rows:$rows/threads:1/real_time flop" 1e-9)"); done
  row "$type" "${cells[@]}"
done
if [[ -x $build/bench/onednn_bench ]]; then
  OMP_NUM_THREADS=1 sample_benchmarks onednn_bench "$short"
  for type in BF16 Int8; do
    cells=()
    for rows in 1 8 64 512; do cells+=("$(cell %.0f "OneDnn/$type/rows:$rows/real_time flop" 1e-9)"); done
    row "oneDNN, $type" "${cells[@]}"
  done
else
  say "No rows of oneDNN: install libdnnl-dev, then configure and build the target onednn_bench." >&2
fi

sample_benchmarks kernels_bench "$short" --benchmark_filter="Attention/.*/$best/context:(256|4096)/threads:1"
header "$best, attention, ms" "after 256 tokens" "after 4096 tokens"
while read -r shape name; do
  cells=()
  for context in 256 4096; do
    cells+=("$(cell %.2f "Attention/$shape/$best/context:$context/threads:1/real_time real_time" 1e-3)")
  done
  row "$name" "${cells[@]}"
done <<'END'
prefill 256 queries of one sequence
decode1 1 query of one sequence
decode8 1 query of each of 8 sequences
decode8_shared the same, all with the same pages
decode8_f32 the same as without shared pages, f32 KV
decode8_int8 int8 KV
decode8_fp8 fp8 KV
END

sample_benchmarks model_bench "$short"
header "demo model, tokens/s" "prefill 16" "prefill 128" "prefill 512" "decode 1" "decode 8" "decode 32"
for i in "${!families[@]}"; do
  cells=()
  for work_of in Prefill/kernels:"$i"/tokens:{16,128,512} Decode/kernels:"$i"/batch:{1,8,32}; do
    cells+=("$(cell %.0f "$work_of items_per_second")")
  done
  row "${families[i]}" "${cells[@]}"
done
