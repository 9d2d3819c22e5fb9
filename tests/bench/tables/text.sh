#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the tables of tokenizers.
set -euo pipefail
# shellcheck source=tests/bench/tables/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

options "Measures tokenizers, one thread. If BATON_SHARED has real vocabularies, they are measured, too.
If the build has sentencepiece_bench (Debian's package libsentencepiece-dev), SentencePiece is measured, too." "$@"
need bench/tokenizer_bench

# The text that is encoded: 100 kB of chats, in one call.
sample_benchmarks tokenizer_bench --benchmark_min_time=0.2 --benchmark_filter='BM_(Encode|Decode|Render|LoadTokenizer)'
header "demo model's tokenizer" "MB/s"
row "encodes chats" "$(cell %.1f "BM_EncodeChats bytes_per_second" 1e-6)"
row "encodes source code" "$(cell %.1f "BM_EncodeSource bytes_per_second" 1e-6)"
row "encodes one letter, a million times" "$(cell %.1f "BM_EncodeOneLetter1MB bytes_per_second" 1e-6)"
row "decodes chats" "$(cell %.1f "BM_Decode bytes_per_second" 1e-6)"

if [[ -n ${BATON_SHARED:-} ]]; then
  header "vocabulary" "chats, MB/s"
  for vocabulary in gpt-2 deepseek-coder llama-spm; do
    row "$vocabulary" "$(cell %.1f "BM_EncodeChats/ggml-vocab-$vocabulary bytes_per_second" 1e-6)"
  done
fi

if [[ -x $build/bench/sentencepiece_bench ]]; then
  sample_benchmarks sentencepiece_bench --benchmark_min_time=0.2
  header "vocabulary of 1800 tokens, trained on the chats" "Baton, MB/s" "SentencePiece, MB/s"
  for type in bpe unigram; do
    row "$type" "$(cell %.1f "BM_Baton/$type bytes_per_second" 1e-6)" \
      "$(cell %.1f "BM_SentencePiece/$type bytes_per_second" 1e-6)"
  done
else
  say "No rows of SentencePiece: install libsentencepiece-dev, then configure and build sentencepiece_bench." >&2
fi

runs=1 sample_benchmarks tokenizer_bench --benchmark_filter=BM_SlowestMegabyte
header "slowest pre-tokenizers, one run" "s for the slowest of 19 megabytes of one thing"
for key in "${!samples[@]}"; do
  if [[ $key =~ BM_SlowestMegabyte/(.*)/iterations.*\ real_time ]]; then
    say "$(cell %.2f "$key" 1e-3) ${BASH_REMATCH[1]}"
  fi
done | sort -gr | sed -n 1,3p | while read -r seconds name; do row "$name" "$seconds"; done
