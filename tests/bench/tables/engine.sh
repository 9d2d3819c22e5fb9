#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the tables of the engine alone.
set -euo pipefail
# shellcheck source=tests/bench/tables/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

options "Measures the engine alone: tokens per second by type of the weights, the parts of a step, decoding by context.
Two threads; the shape of TinyLlama 1.1 B with random weights (made once: 4 GB in build/release/tables)." "$@"
need bin/baton

# engine FILE ARGUMENT...: writes one run's JSON to a file.
engine() { "$build/bin/baton" bench engine --threads 2 --output-tokens 16 --json "${@:2}" >"$1"; }

works=(prefill "decode 1" "decode 8" "decode 32")
for type in q8_0 q4_0 bf16; do
  file=$(model "$type")
  for ((run = 0; run < runs; ++run)); do
    engine "$work/run.json" --model "$file" --repeats 1
    for i in "${!works[@]}"; do
      m="r['measurements'][$i]"
      sample_json "$type ${works[i]}" "${m}['tokens_per_second']" <"$work/run.json"
      for part in products attention kv element_wise sampling rest waiting; do
        sample_json "$type ${works[i]} $part" "100 * ${m}['$part'] / ${m}['step_seconds']" <"$work/run.json"
      done
    done
    limit=int8_operations
    if [[ $type == bf16 ]]; then limit=bf16_operations; fi
    sample_json "$type operations" "100 * r['measurements'][0]['operations_per_second'] / r['limits']['$limit']" \
      <"$work/run.json"
    sample_json "$type reads" "100 * r['measurements'][1]['read_bytes_per_second'] / r['limits']['read_bytes']" \
      <"$work/run.json"
  done
done

header weights "prefill 512, tokens/s" "decode 1" "decode 8" "decode 32" "prefill, % of the CPU's products" \
  "decode 1, % of the memory's bandwidth"
for type in q8_0 q4_0 bf16; do
  row "${type^^}" "$(cell %.0f "$type prefill")" "$(cell %.1f "$type decode 1")" "$(cell %.0f "$type decode 8")" \
    "$(cell %.0f "$type decode 32")" "$(cell %.0f "$type operations")" "$(cell %.0f "$type reads")"
done

header "Q8_0, % of a step" "products with weights" attention "K and V" "element by element" sampling rest \
  "waiting, in all of these"
for name in "${works[@]}"; do
  cells=()
  for part in products attention kv element_wise sampling rest waiting; do
    cells+=("$(cell %.1f "q8_0 $name $part")")
  done
  row "$name" "${cells[@]}"
done

contexts=(128 1024 4096)
for context in "${contexts[@]}"; do
  engine "$work/run.json" --model "$(model q8_0)" --sequences 1 --prompt-tokens 16 --context-tokens "$context" \
    --repeats "$runs"
  sample_json "step $context" "1e3 * r['measurements'][1]['step_seconds']" <"$work/run.json"
  sample_json "attention $context" "1e3 * r['measurements'][1]['attention']" <"$work/run.json"
done
header "decode 1, Q8_0, tokens of context" "${contexts[@]}"
for part in step attention; do
  cells=()
  for context in "${contexts[@]}"; do cells+=("$(cell %.1f "$part $context")"); done
  row "$part, ms" "${cells[@]}"
done
