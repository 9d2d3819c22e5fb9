#!/usr/bin/env bash
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
  spin -a "$@" "-DFAULTS=$faults" -P"gcc -E -x c -I$include" handoff.pml >spin.log 2>&1 || true
  [[ -f pan.c ]] || { cat spin.log; exit 1; }
  gcc -O1 -w -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -o pan pan.c
  ./pan -m1000000 -w22 >result 2>&1 || true
  cd "$root"
}

failed=0
for transport in TCP SHM; do
  explore "$transport" "$root" "-D$transport"
  states=$(awk '/states, stored/ { print $1 }' "$folder/$transport/result")
  if grep -q 'errors: 0$' "$folder/$transport/result" && ! grep -q 'max search depth too small' "$folder/$transport/result"; then
    echo "$transport: $states states, no error"
  else
    grep -E '^pan|errors:' "$folder/$transport/result"
    echo "$transport: the model has an error, see $folder/$transport"
    failed=1
  fi
done

# mutant NAME ROW OTHER-ROW: the table with one row changed.
mutant() {
  local name=$1 row=$2 other=$3
  mkdir -p "$folder/$name/include/${table%/*}"
  grep -qxF "$row" "$root/$table" || { echo "$name: the table has no row $row"; failed=1; return; }
  awk -v row="$row" -v other="$other" '$0 == row { print other; next } { print }' "$root/$table" \
    >"$folder/$name/include/$table"
  explore "$name" "$folder/$name/include" -DTCP
  if grep -q 'errors: 0$' "$folder/$name/result"; then
    echo "$name: not noticed"
    failed=1
  else
    echo "$name: noticed"
  fi
}

mutant commits-without-flush 'WRITER(Granted, CommitSequence, FlushCommit, Nothing, Flush, Nothing)' \
  'WRITER(Granted, CommitSequence, Committing, Commit, Nothing, Nothing)'
mutant aborts-without-flush 'WRITER(Granted, Revoke, FlushRevoke, Nothing, Flush, Nothing)' \
  'WRITER(Granted, Revoke, Ended, Aborted, Nothing, Fail)'
mutant frees-what-is-granted 'RECEIVER(Granted, Close, Revoking, Revoke, Nothing, Nothing)' \
  'RECEIVER(Granted, Close, None, Revoke, Release, Nothing)'
mutant keeps-the-pages-of-a-crossed-commit 'RECEIVER(Revoking, Commit, None, CommittedError, Release, Nothing)' ''
mutant keeps-a-crossed-grant 'WRITER(Ended, Granted, Ended, Aborted, Nothing, Nothing)' ''
mutant waits-for-the-dead 'RECEIVER(Revoking, PeerRevoked, None, Nothing, Release, Nothing)' ''

if ((failed == 0)); then rm -rf "$folder"; fi
exit "$failed"
