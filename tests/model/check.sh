#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Has Spin walk through every state of the handoff's model, over both transports, and then through models with one rule
# each taken away, which must fail: otherwise the model shows nothing.
#
#   tests/model/check.sh [FAULTS]     1 if not given; 2 takes minutes and gigabytes
#
# After an error in the model: cd into the folder that is named, `./pan -r handoff.pml.trail` shows the way there.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
faults=${1:-1}
folder=$(mktemp -d "${TMPDIR:-/tmp}/baton-model-XXXXXX")
table=kvtransfer/handoff/transitions.def

# explore NAME TABLE FLAG...: writes what pan says to $folder/NAME/result.
explore() {
  local name=$1 include=$2
  shift 2
  mkdir -p "$folder/$name"
  cd "$folder/$name"
  cp "$root/tests/model/handoff.pml" .
  spin -a "$@" -P"gcc -E -x c -I$include" handoff.pml >spin.log 2>&1 || true
  [[ -f pan.c ]] || { cat spin.log; exit 1; }
  gcc -O2 -w -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -o pan pan.c
  ./pan -m1000000 -w25 >result 2>&1 || true
  cd "$root"
}

failed=0
for transport in TCP SHM; do
  for count in 0 "$faults"; do
    name=$transport-$count
    explore "$name" "$root" "-D$transport" "-DFAULTS=$count"
    result=$folder/$name/result
    states=$(awk '/states, stored/ { print $1 }' "$result")
    if grep -q 'errors: 0$' "$result" && ! grep -qE 'max search depth too small|Search not completed' "$result"; then
      echo "$transport, faults: $count: $states states, no error"
    else
      grep -E '^pan|errors:|completed' "$result" || cat "$result"
      echo "$transport, faults: $count: the model has an error, see ${result%/*}"
      failed=1
    fi
  done
done

# mutant NAME TRANSPORT ROW OTHER-ROW: the table with one row changed.
mutant() {
  local name=$1 transport=$2 row=$3 other=$4
  mkdir -p "$folder/$name/include/${table%/*}"
  grep -qxF "$row" "$root/$table" || { echo "$name: the table has no row $row"; failed=1; return; }
  awk -v row="$row" -v other="$other" '$0 == row { print other; next } { print }' "$root/$table" \
    >"$folder/$name/include/$table"
  explore "$name" "$folder/$name/include" "-D$transport" "-DFAULTS=$faults"
  if grep -q 'errors: [1-9]' "$folder/$name/result"; then
    echo "$name: noticed"
  else
    echo "$name: not noticed, see $folder/$name"
    failed=1
  fi
}

mutant commits-without-flush SHM 'WRITER(Granted, CommitSequence, FlushCommit, Nothing, Flush, Nothing)' \
  'WRITER(Granted, CommitSequence, Committing, Commit, Nothing, Nothing)'
mutant takes-puts-for-landed SHM 'WRITER(Granted, FlushPuts, FlushReport, Nothing, Flush, Nothing)' \
  'WRITER(Granted, FlushPuts, Flushed, Nothing, Nothing, Flushed)'
mutant aborts-without-flush TCP 'WRITER(Granted, Revoke, FlushRevoke, Nothing, Flush, Nothing)' \
  'WRITER(Granted, Revoke, Ended, Aborted, Nothing, Fail)'
mutant frees-what-is-granted SHM 'RECEIVER(Granted, Close, Revoking, Revoke, Nothing, Nothing)' \
  'RECEIVER(Granted, Close, None, Revoke, Release, Nothing)'
mutant keeps-the-pages-of-a-crossed-commit TCP 'RECEIVER(Revoking, Commit, None, CommittedError, Release, Nothing)' ''
mutant keeps-a-crossed-grant TCP 'WRITER(Ended, Granted, Ended, Aborted, Nothing, Nothing)' ''
mutant forgets-who-was-given-up SHM 'RECEIVER(Granted, PeerGivenUp, Revoking, Nothing, Nothing, Failed)' \
  'RECEIVER(Granted, PeerGivenUp, None, Nothing, Release, Failed)'
mutant waits-for-the-dead SHM 'RECEIVER(Revoking, PeerRevoked, None, Nothing, Release, Nothing)' ''

mutant keeps-the-pages-of-the-lost TCP 'RECEIVER(Granted, PeerRevoked, None, Nothing, Release, Failed)' \
  'RECEIVER(Granted, PeerRevoked, None, Nothing, Nothing, Failed)'

if ((failed == 0)); then rm -rf "$folder"; fi
exit "$failed"
