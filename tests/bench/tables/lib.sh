# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Functions that the scripts of this folder share: options, samples and their medians, rows of Markdown, and processes
# on the loopback. Needs the build of the preset release and Python.

# shellcheck source=deploy/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../../deploy/lib.sh"

build=$root/build/release
port=${BATON_PORT:-8151} # the router's; worker N has port + 10 N and the next one
target=127.0.0.1:$port
runs=3
work=$(mktemp -d)
trap 'stop_all; rm -rf "$work"' EXIT

# options ABOUT ARGUMENT...: reads the options that every script has.
options() {
  local about=$1
  shift
  while (($# > 0)); do
    case $1 in
      --runs) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "--runs expects a number."; runs=$2; shift ;;
      -h | --help)
        printf '%s\n' "Usage: tests/bench/tables/${0##*/} [--runs N]" "" "$about" "" \
          "Prints tables in Markdown. Each value is the median of N runs (default: $runs)."
        exit
        ;;
      *) die "unknown argument $1" "--help shows the options." ;;
    esac
    shift
  done
}

# need PROGRAM...: fails if a program of build/release is missing.
need() {
  local program
  for program in "$@"; do
    [[ -x $build/$program ]] || die "build/release/$program is missing." \
      "Run: cmake --preset release && cmake --build --preset release --target ${program##*/}"
  done
}

# model TYPE: prints the path of a model with the shape of TinyLlama 1.1 B and random weights. The first call makes it.
model() {
  local file=$build/tables/tinyllama-1.1b-$1.gguf
  if [[ ! -e $file ]]; then
    mkdir -p "$build/tables"
    "$build/bin/baton" models make --preset tinyllama-1.1b --dtype "$1" --out "$file" >&2
  fi
  echo "$file"
}

# sample KEY VALUE: notes one run's value.
declare -A samples=()
sample() { samples[$1]+="$2"$'\n'; }

# sample_json KEY EXPRESSION: notes the value of a Python expression over `r`, the JSON on the standard input.
sample_json() {
  local value
  value=$(python3 -c 'import json, sys; r = json.load(sys.stdin); print(eval(sys.argv[1]))' "$2")
  sample "$1" "$value"
}

# sample_benchmarks PROGRAM ARGUMENT...: runs a program of Google Benchmark, and notes `BENCHMARK COUNTER` for each
# counter.
sample_benchmarks() {
  local run name counter value
  for ((run = 0; run < runs; ++run)); do
    "$build/bench/$1" "${@:2}" --benchmark_format=json 2>/dev/null >"$work/benchmarks.json"
    python3 - "$work/benchmarks.json" >"$work/benchmarks" <<'END'
import json, sys
for b in json.load(open(sys.argv[1]))["benchmarks"]:
    for counter, value in b.items():
        if isinstance(value, float) and not b.get("error_occurred"):
            print(b["name"], counter, value)
END
    while read -r name counter value; do sample "$name $counter" "$value"; done <"$work/benchmarks"
  done
}

# cell FORMAT KEY [FACTOR]: prints the median of the samples of KEY, or - if there is none.
cell() {
  printf '%s' "${samples[$2]:-}" | sort -g | awk -v format="$1" -v factor="${3:-1}" '
    { v[NR] = $1 }
    END { if (NR) printf format, factor * (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2; else printf "-" }'
}

# row CELL...
row() { printf '|' && printf ' %s |' "$@" && printf '\n'; }

# header CELL...: begins a table.
header() {
  printf '\n'
  row "$@"
  printf '|' && printf -- '---|%.0s' "$@" && printf '\n'
}

# start NAME PROGRAM ARGUMENT...: starts a program of build/release/bin. The log is $work/NAME.log.
declare -A pids=()
start() {
  local name=$1 program=$2
  shift 2
  BATON_SECRET='of the loopback only' setpriv --pdeathsig TERM -- "$build/bin/$program" "$@" \
    </dev/null >"$work/$name.log" 2>&1 &
  pids[$name]=$!
}

# worker ROLE NUMBER ARGUMENT...: starts worker ROLE-NUMBER, role prefill, decode or both, and waits until it serves.
addresses=
worker() {
  local role=$1 number=$2 program=baton-decode at=$((port + 10 * $2))
  shift 2
  addresses+=${addresses:+,}127.0.0.1:$at
  if [[ $role == prefill ]]; then
    program=baton-prefill
  else
    set -- --role="$role" --handoff-listen=127.0.0.1:$((at + 1)) "$@"
  fi
  start "$role-$number" "$program" --listen="127.0.0.1:$at" --metrics-listen= --worker-id="$role-$number" "$@"
  wait_for "$role-$number" worker.serving
}

# wait_for PROCESS TEXT: waits until the process has logged TEXT.
wait_for() {
  local deadline=$((SECONDS + 120))
  until grep -q -- "$2" "$work/$1.log"; do
    if ! kill -0 "${pids[$1]}" 2>/dev/null || ((SECONDS > deadline)); then
      die "$1 did not log $2." "Its last lines:" "$(tail -n 5 "$work/$1.log")"
    fi
    sleep 0.005
  done
}

# router ARGUMENT...: starts a router over all workers, and waits until every pair of workers is ready.
router() {
  start router baton-router --listen="$target" --metrics-listen= --workers="$addresses" "$@"
  "$build/bin/baton" status --target "$target" --wait 60s >/dev/null
  local tries
  for ((tries = 0; tries < 600; ++tries)); do
    if "$build/bin/baton" status --target "$target" --json | python3 -c '
import json, sys
sys.exit(any(p["state"] != "ready" for p in json.load(sys.stdin)["pairs"]))'; then return; fi
    sleep 0.1
  done
  die "not every pair of workers became ready." "$("$build/bin/baton" status --target "$target")"
}

# generate ARGUMENT...: prints the last message of an answer, as JSON.
generate() { "$build/bin/baton" generate --target "$target" --ignore-eos --json "$@" | sed -n '$p'; }

stop_all() {
  local name
  for name in "${!pids[@]}"; do kill "${pids[$name]}" 2>/dev/null || true; done
  for name in "${!pids[@]}"; do wait "${pids[$name]}" 2>/dev/null || true; done
  pids=()
  addresses=
}
