#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs missing packages, builds, starts a router, a prefill worker and a decode worker as separate processes, and
# streams answers of the bundled demo model. Leaves no process behind.
set -euo pipefail

# shellcheck source=deploy/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<EOF
usage: deploy/demo.sh [--once] [--prompt TEXT] [--model PATH] [--port N]

  --once         answer one prompt and end; without --once, take more prompts, one per line, until Ctrl-C or Ctrl-D
  --prompt TEXT  the first prompt (default: "$prompt")
  --model PATH   the model: a folder in Hugging Face form or a GGUF file (default: the bundled demo model)
  --port N       the first of seven consecutive ports on the loopback (default: 8051, or \$BATON_PORT)

If \$BATON_BIN names a folder with Baton's binaries, the script installs and builds nothing.
EOF
}

once=0
prompt="What does Baton do?"
model=$root/models/demo-chat
# The demo model is too small for more threads.
max_threads=4
# Below Linux's ephemeral ports (32768 and up), which outgoing connections may hold for a minute.
port=${BATON_PORT:-8051}
while [ $# -gt 0 ]; do
  case $1 in
    --once) once=1 ;;
    --prompt | --model | --port)
      [ $# -ge 2 ] || die "$1 expects a value." "--help shows all options."
      case $1 in
        --prompt) prompt=$2 ;;
        --model) model=$2 max_threads=1024 ;;
        --port) port=$2 ;;
      esac
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    *) die "unknown option $1." "--help shows all options." ;;
  esac
  shift
done
[ -d "$model" ] || [ -f "$model" ] || die "--model $model: there is no such folder or file."
if [ -f "$model" ]; then
  [ "$(head -c 4 "$model" | tr -d '\0')" = GGUF ] || die "--model $model is not a GGUF file."
else
  [ -f "$model/config.json" ] || die "--model $model is not a model's folder: it has no config.json."
fi
if ! [[ $port =~ ^[1-9][0-9]{0,4}$ ]] || [ "$port" -gt 65529 ]; then
  die "--port $port: expected a number from 1 to 65529."
fi

declare -A pids=() logs=()

# Runs at every exit but SIGKILL. After a SIGKILL of this script, the kernel sends SIGTERM to its children (see launch).
cleanup() {
  local code=$? children alive pid deadline
  trap '' INT TERM
  children=$(jobs -p)  # not pids: a signal may have come before launch noted the last child
  for pid in $children; do kill -TERM "$pid" 2>/dev/null || true; done
  deadline=$((SECONDS + 5))
  while [ $SECONDS -lt $deadline ]; do
    alive=
    for pid in $children; do
      kill -0 "$pid" 2>/dev/null || continue
      alive+=" $pid"
      # A child that has not yet become its program can lose a signal while bash resets its traps. A second one tells
      # a program not to wait for what still runs.
      case $(cat "/proc/$pid/comm" 2>/dev/null) in
        baton*) ;;
        *) kill -TERM "$pid" 2>/dev/null || true ;;
      esac
    done
    [ -n "$alive" ] || break
    sleep 0.05
  done
  for pid in $children; do
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  exit "$code"
}
trap cleanup EXIT
trap 'printf "\n"; exit 130' INT
trap 'exit 143' TERM

# launch NAME BINARY ARGUMENT...: runs a program in the background.
launch() {
  local name=$1 binary=$2
  shift 2
  setpriv --pdeathsig TERM -- "$bin/$binary" "$@" </dev/null &
  pids[$name]=$!
}

# start NAME BINARY ARGUMENT...: launches a program whose output goes to a file without a name. No end of this script
# leaves such a file behind.
start() {
  local file fd
  file=$(mktemp "${TMPDIR:-/tmp}/baton-demo.XXXXXX")
  exec {fd}>>"$file"
  rm -f "$file"
  logs[$1]=/proc/$$/fd/$fd
  launch "$@" >&"$fd" 2>&1
}

running() { kill -0 "${pids[$1]}" 2>/dev/null; }

# finish NAME: waits for the program's end and returns its status. A signal interrupts `wait` at once, unlike a program
# in the foreground.
finish() {
  local status=0
  wait "${pids[$1]}" || status=$?
  unset "pids[$1]"
  return "$status"
}

# fail_with_log NAME WHAT-FAILED WHAT-TO-DO: shows the end of the program's log, then fails.
fail_with_log() {
  local name=$1
  shift
  printf '\nThe last lines of the %s:\n' "$name" >&2
  tail -n 20 "${logs[$name]}" | sed 's/^/    /' >&2
  die "$@"
}

check_ports() {
  local p
  for p in $(seq "$port" $((port + 6))); do
    if (exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null; then
      die "port $p is in use." "Stop the program that listens there, or choose other ports: deploy/demo.sh --port N"
    fi
  done
}

# Prints the CPUs that this process may use, one per line.
usable_cpus() {
  local range
  for range in $(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status | tr ',' ' '); do
    seq "${range%-*}" "${range#*-}"
  done
}

# Sets compute_prefill and compute_decode: each worker gets half of the cores, so that no worker slows the other down.
split_cores() {
  local cpus half
  mapfile -t cpus < <(usable_cpus)
  half=$((${#cpus[@]} / 2))
  if [ "$half" -eq 0 ]; then
    compute_prefill=(--threads=1)
    compute_decode=(--threads=1)
    return
  fi
  if [ "$half" -gt "$max_threads" ]; then half=$max_threads; fi
  compute_prefill=("--cpus=$(IFS=,; echo "${cpus[*]:0:half}")")
  compute_decode=("--cpus=$(IFS=,; echo "${cpus[*]:half:half}")")
}

start_processes() {
  local worker=(--model="$model" --drain-timeout=1s) secret
  secret=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
  split_cores
  BATON_SECRET=$secret start prefill baton-prefill "${worker[@]}" "${compute_prefill[@]}" --worker-id=prefill-0 \
    --listen="127.0.0.1:$((port + 1))" --metrics-listen="127.0.0.1:$((port + 5))"
  BATON_SECRET=$secret start decode baton-decode "${worker[@]}" "${compute_decode[@]}" --worker-id=decode-0 \
    --listen="127.0.0.1:$((port + 2))" --handoff-listen="127.0.0.1:$((port + 3))" \
    --metrics-listen="127.0.0.1:$((port + 6))"
  start router baton-router --listen="127.0.0.1:$port" --metrics-listen="127.0.0.1:$((port + 4))" \
    --workers="127.0.0.1:$((port + 1)),127.0.0.1:$((port + 2))" --drain-timeout=1s
}

# Waits until the router is ready. Fails as soon as a process ends: a worker that cannot serve says why and exits.
wait_until_ready() {
  local limit=120 name
  start status baton status --target "127.0.0.1:$port" --wait "${limit}s"
  while running status; do
    for name in prefill decode router; do
      running "$name" ||
        fail_with_log "$name" "the $name process ended before it was ready." "The last lines of the log, above, say why."
    done
    sleep 0.1
  done
  if ! finish status; then
    "$bin/baton" status --target "127.0.0.1:$port" >&2 || true
    fail_with_log router "not ready within $limit seconds." "The table above says which worker is missing."
  fi
}

answer() {
  printf '\n> %s\n' "$1"
  launch client baton generate --target "127.0.0.1:$port" --chat "$1" --temperature 0 --summary
  finish client
}

# Answers one prompt per line of stdin.
answer_more() {
  local line
  while true; do
    if [ -t 0 ]; then
      printf '\n'
      read -r -e -p "prompt (Ctrl-C ends): " line || break
    else
      read -r line || [ -n "$line" ] || break
    fi
    # The client prints the error of a refused prompt; the next prompt may succeed.
    if [ -n "$line" ]; then answer "$line" || true; fi
  done
}

if [ -n "${BATON_BIN:-}" ]; then
  bin=$BATON_BIN
else
  install_packages
  build_preset release baton-router baton-prefill baton-decode baton
  bin=$root/build/release/bin
fi
check_ports
say "starting a router (port $port), a prefill worker and a decode worker with ${model##*/}"
start_processes
wait_until_ready
answer "$prompt" || fail_with_log router "no answer to the first prompt." "The lines above say why."
if [ "$once" -eq 0 ]; then answer_more; fi
